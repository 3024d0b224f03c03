/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One recording: what its beginning (recording.c), its course (watch.c) and its end (ending.c)
 * share. */
#ifndef CMD_RECORDING_H
#define CMD_RECORDING_H

#include <pthread.h>
#include "cmd/carry.h"
#include "cmd/cmd.h"
#include "inject/family.h"
#include "record/control.h"
#include "record/observe.h"
#include "record/recorder.h"
#include "record/sideband.h"
#include "unwind/symbols.h"

struct recording {
	struct target *t;
	struct session s;
	struct session_id id;
	struct recorder *r;
	struct sideband *sideband;
	struct control *control;
	struct carry carry;
	struct observer *observer; /* NULL: hooks in the target */
	uint64_t observed_until;
	pthread_mutex_t lock; /* session's tables: main thread and aggregator */
	bool install_wanted, resumed;
	size_t next_module;
	struct symbols *symbols;
	uint64_t end_ns;
};

/* Looks at the target's mappings again; what is new in them is to be hooked then
 * (install_wanted).  Return: false if it cannot be read. */
bool recording_refresh(struct recording *rec);

/* Waits for the end, says every second how far it is, and hooks what is loaded meanwhile.
 * @signals: a signalfd.  Return: why it is over. */
enum mp_end_reason recording_watch(struct recording *rec, const struct recording_options *o,
				   int signals);

/* Takes the hooks out where @reason asks for it, and completes the recording.
 * @path: the recording.  @failed: it never began; no recording is left.  Return: exit status,
 * what is wrong is said. */
int recording_end(struct recording *rec, const struct recording_options *o,
		  enum mp_end_reason reason, const char *path, bool failed);

/* Tells who follows that the recording has begun (@reason 0) or why it is over. */
void recording_tell(const struct recording *rec, const struct recording_options *o, uint8_t reason);

#endif
