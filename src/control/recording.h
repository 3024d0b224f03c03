/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One recording: what its start (recording.c), its main loop (watch.c), its end (ending.c) and its
 * pieces (pieces.c) share. */
#ifndef CONTROL_RECORDING_H
#define CONTROL_RECORDING_H

#include <pthread.h>
#include "cmd/cmd.h"
#include "control/carry.h"
#include "control/embed.h"
#include "inject/find.h"
#include "record/control.h"
#include "record/kernel/observe.h"
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
	struct observer *observer; /* NULL: recording with hooks in the target */
	uint64_t observed_until;
	/* Protects the parts of the session that change: its tables, plan and journal.  The
	 * aggregator and the thread that completes pieces read them; the aggregator and the main
	 * thread change them. */
	pthread_mutex_t lock;
	bool install_wanted; /* protected by lock */
	bool closed; /* protected by lock: from now on only the main thread changes the session */
	bool resumed;
	size_t next_module;
	struct symbols *symbols;
	struct embedding embedding;
	uint64_t end_ns;
	const struct recording_options *o;
	const char *pattern; /* for the recording's path, or the paths of its pieces */
	char path[4096]; /* of the recording, or of its current piece; belongs to the aggregator */
	int piece_error; /* the last one that was reported */
};

/* Makes the path absolute, for processes that read the journal from another directory. */
void recording_absolute(const char *path, char *out, size_t size);

/* The rotation to pieces of @bytes (0: none); its callbacks' ctx is the struct recording. */
struct recorder_rotation recording_rotation(uint64_t bytes);
/* Reports on stderr, once, why the next piece could not be started. */
void recording_tell_piece_error(struct recording *rec);

/* Reads the symbols of all mapped modules.  Takes rec->lock.  To be freed by symbols_free(). */
struct symbols *recording_symbols(struct recording *rec);
/* Writes the symbols of the addresses.  @symbols: NULL: none. */
void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n);
/* Writes all modules: recorder_ending.modules. */
void recording_put_modules(void *rec, struct mpf_writer *w);

/* Reads the target's mappings again, and sets install_wanted if new ones are to be hooked.  Return:
 * false if they cannot be read. */
bool recording_refresh(struct recording *rec);

bool recording_target_alive(const struct recording *rec);
/* Has the follower (recording_options.news_fd) ended?  Then nothing else will end this recorder. */
bool recording_is_deserted(const struct recording *rec);
/* Waits for the end of the recording.  Every second, prints the progress, and hooks libraries that
 * were loaded since.  @signals: a signalfd.  Return: why the recording ended. */
enum mp_end_reason recording_watch(struct recording *rec, const struct recording_options *o,
				   int signals);

/* Removes the hooks if @reason requires it, and completes the recording.  @path: the recording.
 * @failed: the recording never began, and no file is left.  Return: exit status; errors were
 * printed. */
int recording_end(struct recording *rec, const struct recording_options *o,
		  enum mp_end_reason reason, const char *path, bool failed);

/* Reports to the follower that the recording has begun (@reason 0) or why it ended. */
void recording_tell(const struct recording *rec, const struct recording_options *o, uint8_t reason);
/* Reports that the recording could not begin: for a followed process to the follower, else on
 * stderr.  Return: exit status. */
int recording_failed(const struct recording_options *o, const struct mp_err *err);

#endif
