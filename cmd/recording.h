/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One recording: what its beginning (recording.c), its course (watch.c) and its end (ending.c)
 * share; and what is different with pieces (pieces.c). */
#ifndef CMD_RECORDING_H
#define CMD_RECORDING_H

#include <pthread.h>
#include "cmd/carry.h"
#include "cmd/cmd.h"
#include "cmd/embed.h"
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
	/* Of what changes in the session: its tables, plan and journal.  The aggregator and the
	 * thread that completes pieces look at them, the aggregator and the main thread change
	 * them. */
	pthread_mutex_t lock;
	bool install_wanted; /* with lock */
	bool closed;	     /* with lock: only the main thread changes the session now */
	bool resumed;
	size_t next_module;
	struct symbols *symbols;
	struct embedding embedding;
	uint64_t end_ns;
	const struct recording_options *o;
	const char *pattern; /* of paths */
	char path[4096];     /* of the recording, or of its piece at hand: the aggregator's */
	int piece_error;     /* that was told */
};

/* An absolute path, for those who read the journal from another directory. */
void recording_absolute(const char *path, char *out, size_t size);

/* Pieces of @bytes (0: none); called with the recording. */
struct recorder_rotation recording_rotation(uint64_t bytes);
/* Says on stderr once why no next piece could begin. */
void recording_tell_piece_error(struct recording *rec);

/* The symbols of what is mapped; takes rec->lock.  Freed by symbols_free(). */
struct symbols *recording_symbols(struct recording *rec);
/* Writes those of the addresses.  @symbols: NULL: none. */
void recording_put_symbols(struct recording *rec, struct symbols *symbols, struct mpf_writer *w,
			   const uint64_t *pc, uint64_t n);
/* struct recorder_ending. */
void recording_put_modules(void *rec, struct mpf_writer *w);

/* Looks at the target's mappings again; what is new in them is to be hooked then
 * (install_wanted).  Return: false if it cannot be read. */
bool recording_refresh(struct recording *rec);

bool recording_target_alive(const struct recording *rec);
/* Has the process that follows (recording_options.news_fd) ended?  Then no other one ends this
 * recorder. */
bool recording_is_deserted(const struct recording *rec);
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
/* It could not begin: tells who follows if that is to say it, else says it.  Return: exit status.
 */
int recording_failed(const struct recording_options *o, const struct mp_err *err);

#endif
