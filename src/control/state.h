/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state of one recording: what its start (recording.c), its main loop (watch.c), its end
 * (ending.c) and its pieces (pieces.c) share. */
#ifndef CONTROL_STATE_H
#define CONTROL_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/target.h"
#include "control/code_history.h"
#include "control/embed.h"
#include "control/jit.h"
#include "control/options.h"
#include "inject/find.h"
#include "inject/session.h"
#include "record/pieces/carry.h"
#include "record/control.h"
#include "record/kernel/observe.h"
#include "record/recorder.h"
#include "record/sideband.h"
#include "stream/sender.h"
#include "unwind/symbols/symbols.h"

struct recording {
	struct target *t;
	struct session s;
	struct session_id id;
	struct recorder *r;
	struct sideband *sideband;
	struct control *control;
	struct carry carry;
	struct observer *observer; /* NULL: recording with hooks in the target */
	uint64_t observed_until;
	/* Protects the parts of the session that change: its tables, plan and journal.  The
	 * aggregator and the thread that completes pieces read them; the aggregator and the main
	 * thread change them. */
	pthread_mutex_t lock;
	bool install_wanted; /* protected by lock */
	bool closed; /* protected by lock: from now on only the main thread changes the session */
	bool resumed;
	/* Protects what follows it; taken after lock.  The main thread and the aggregator poll the side band, the
	 * aggregator for each batch: it must not wait until the target has stopped. */
	pthread_mutex_t code_lock;
	struct sideband_news news; /* since the last recording_news() */
	struct code_history code;
	struct symbols *symbols;
	struct jit_files jit;
	struct embedding embedding;
	uint64_t end_ns;
	const struct recording_options *o;
	const char *pattern;   /* for the recording's path, or the paths of its pieces */
	uint8_t file_id[16];   /* mp_info.id */
	struct sender *sender; /* NULL: the recording is a file */
	int sender_fd;	       /* what is written there is sent; -1: only the recorder has it */
	bool sender_away;      /* it was reported that there is no connection */
	char executable[4096], called[64]; /* as in struct mp_info */
	char path[4096]; /* of the recording, or of its current piece; belongs to the aggregator */
	int piece_error, delete_error; /* the last ones that were reported */
};

#endif
