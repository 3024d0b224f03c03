/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recorder of one process: a reader thread that only drains the agent's rings, a bounded
 * queue, and an aggregator thread that decodes the records, maintains the live table and writes
 * the file.  With more jobs, other threads encode and write, and sort the records.
 *
 *	recorder_start()	before the hooks are inserted
 *	recorder_progress()	any time
 *	recorder_stop()		after session_close(): the rings have no writer any more
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "formats/file.h"
#include "formats/session.h"
#include "lib/err.h"
#include "record/pieces/carry.h"
#include "record/queue.h"
#include "record/select.h"
#include "record/stacks/code_ranges.h"

/* Threads that process the records, beside the reader: at most this many ... */
#define RECORDER_JOBS 3u
/* ... and from how many on one writes the file, and one sorts the records. */
#define JOBS_WRITING 2u
#define JOBS_SORTING 3u

/* Callbacks that write the end of the file; called with recorder_config.ctx.  Addresses are
 * ascending and distinct. */
struct recorder_ending {
	/* Writes all modules, for the index. */
	void (*modules)(void *ctx, struct mpf_writer *w);
	/* Writes the symbols of the addresses. */
	void (*symbolize)(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n);
	/* Writes the binaries that contain the addresses; NULL: none. */
	void (*embed)(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n);
};

/* Rotation of the recording; callbacks are called with recorder_config.ctx. */
struct recorder_rotation {
	uint64_t bytes; /* size of a file at which the next one begins; 0: never */
	/* Fills @path for piece @number.  Called by the aggregator. */
	void (*name)(void *ctx, uint32_t number, char *path, size_t size);
	/* The piece at @path has begun and contains all live blocks.  Called by the aggregator. */
	void (*begun)(void *ctx, const char *path);
	/* For all pieces but the last.  The aggregator calls modules(), another thread
	 * symbolize(). */
	struct recorder_ending ending;
};

#define RECORDER_MARK_MOST 400 /* bytes */
/* Return: whether @name can be the name of a mark. */
bool recorder_is_mark(const char *name);

struct recorder_config {
	/* memprof's mapping of the session block: the target can write there */
	struct ss_control *block;
	const struct ss_control *layout; /* trusted copy of its layout */
	/* trusted; hooks are added and removed during the recording */
	const struct ss_journal *journal;
	uint64_t block_length;
	pid_t pid;
	const char *path; /* path of the recording */
	int file;	  /* > 0: write it there, not to @path; it stays the caller's */
	/* Called by recorder_flush(): waits until the first @bytes of @file have arrived.  Return: 0 or a
	 * negative errno.  NULL: they are in the file. */
	int (*delivered)(void *ctx, uint64_t bytes);
	struct mp_info info;	     /* start_unix_ns is filled by recorder_start() */
	uint64_t queue_ceiling;	     /* bytes; 0: 256 MiB */
	unsigned int jobs;	     /* threads beside the reader, from 1 to RECORDER_JOBS */
	uint32_t max_depth;	     /* number of innermost frames to keep of a stack; 0: all */
	struct select_config select; /* the strings are owned by the caller */
	/* Ticks up to which all records are in the rings, for a producer that delivers late (the
	 * observer).  NULL: threads of the target write their records without delay. */
	const uint64_t *complete_until;
	const struct carry *carry; /* heap taken over from the previous recorder; NULL: none */
	struct recorder_rotation rotation;
	/* Keep only the live heap, and write it to @path when asked (recorder_save()) and at the
	 * end; without rotation and culling */
	bool live_only;
	/* A file that is open for writing: gets the last view, as by recorder_view(), when the recording ends.  Closed
	 * by recorder_stop().  0: none. */
	int last_view;
	/*
	 * Called by the aggregator when it met code without an unwind table.  Updates the tables.
	 * Return: whether any changed.
	 */
	bool (*code_changed)(void *ctx);
	/* Called by the aggregator.  Return: whether a call instruction precedes @pc.  NULL: assume
	 * yes. */
	bool (*follows_call)(void *ctx, uint64_t pc);
	/* Called by the aggregator: fills @m with the next module that is not in the file yet.  Its
	 * strings are valid until the next call.  Return: false if there is none. */
	bool (*next_module)(void *ctx, struct mp_module *m);
	/* Called by the aggregator: fills @c with the next change of the code.  All changes that precede the
	 * call are known to it.  Return: false if there is none.  NULL: code does not change. */
	bool (*next_change)(void *ctx, struct code_change *c);
	void *ctx;
};

/* What the recording costs, with a budget (recorder_config.info.overhead_ppm). */
struct recorder_cost {
	uint64_t target_ns, in_target_ns, own_ns; /* CPU time of the target, its part, memprof's */
	uint32_t ppm;	/* of the target's CPU time, in the last seconds; UINT32_MAX: far more */
	uint32_t level; /* of sampling now: one of 2^level bytes; 0: every allocation */
};

struct recorder_progress {
	uint64_t events, allocs, frees, live_blocks, allocated_bytes;
	uint64_t live_bytes, peak_live_bytes;
	uint64_t lost, file_bytes, duration_ns;
	uint64_t live_table_bytes;
	uint64_t foreign_frees, stacks;
	/* Allocations that were thinned out (agent/thin.h), when, and the largest weight; 0: none */
	struct {
		uint64_t allocations, first_ns, last_ns;
		uint8_t most;
	} thinning;
	struct recorder_cost cost;
	uint64_t tracked; /* recorded blocks that are live, each counted once */
	/* Memory that the program mapped directly, not through an allocator */
	uint64_t mapped_bytes, mappings;
	/* Bytes resident in mappings without a file (malloc's included), as last read */
	uint64_t anonymous;
	uint32_t pieces; /* finished pieces, which is the number of the current one */
	uint32_t pieces_deleted;
	int delete_error; /* why an old piece could not be deleted */
	bool stalled;	  /* the aggregator has had work but made no progress for two seconds */
	int error;	  /* negative errno: the file can no longer be written */
	/* Why the next piece could not be created; the current file is continued */
	int piece_error;
};

struct recorder;

/* Return: 0 with @r running, or a negative errno with @err filled. */
int recorder_start(const struct recorder_config *config, struct recorder **r, struct mp_err *err);
/* Return: the latest published counters.  Can be called by any thread. */
struct recorder_progress recorder_progress(struct recorder *r);
/* Asks the thread that controls the recording to end it, as memprof detach does. */
void recorder_request_end(struct recorder *r);
/* While paused, new blocks are left out; those recorded before are still followed. */
void recorder_pause(struct recorder *r, bool paused);
bool recorder_is_paused(struct recorder *r);
/* Writes a mark called @name into the recording.  Return: 0, -EAGAIN when too many marks are
 * waiting to be written, -EOPNOTSUPP: with recorder_config.live_only, or -ENOMEM. */
int recorder_mark(struct recorder *r, const char *name);

/* The boundary of a flush: the first @file_bytes of the recording contain exactly the events up to
 * @time_ns. */
struct recorder_boundary {
	uint64_t barrier; /* number of the flush */
	uint64_t time_ns, events, file_bytes;
};

/**
 * recorder_flush() - an ordered barrier through rings and queue; recording continues
 * All events of the target from before the call are in the file when it returns.  Several threads
 * can call it at once.
 * Return: 0 with @b filled; -ESHUTDOWN when the recording ended first (then its file is complete).
 */
int recorder_flush(struct recorder *r, struct recorder_boundary *b);

/**
 * recorder_save() - recorder_flush() for recorder_config.live_only: writes the live heap
 * The file takes the place of the one before.  Several threads must not call it at once.
 * Return: as recorder_flush(), or another negative errno: the file could not be written, and the one before
 * is still there.
 */
int recorder_save(struct recorder *r, struct recorder_boundary *b);
bool recorder_is_live_only(const struct recorder *r);

/* How the recorder was when it made a view. */
struct recorder_view {
	uint64_t time_ns;
	uint64_t behind_ns; /* the sums are what they were this long before time_ns */
	bool paused;
	bool thins;	/* recorder_thin() is possible */
	uint32_t least; /* the last recorder_thin() */
};

/**
 * recorder_view() - write what is live and what was allocated so far, by stack and by thread
 * @fd: of an empty file that is open for writing; is closed
 * @from: write the frames of the stacks from this id on, and the symbols of their addresses, which
 * takes the time of reading the files that have them
 *
 * Several threads can call it at once.  Return: 0 with @v filled, or a negative errno with @err:
 * -ESHUTDOWN when the recording ended first.
 */
int recorder_view(struct recorder *r, int fd, uint32_t from, struct recorder_view *v,
		  struct mp_err *err);
/* Has frequent allocations thinned out (agent/thin.h) as at a pressure of @least or more, at most 12: they
 * are then estimated.  0: only when the recorder is behind.  Return: 0, or -EOPNOTSUPP if the session
 * does not thin. */
int recorder_thin(struct recorder *r, uint32_t least);

/* Notes that the target is released or gone.  The recording ends now, even if writing the remaining
 * records takes longer. */
void recorder_let_go(struct recorder *r);

/* Makes recorder_stop() leave the session to the next recorder: it removes only records from the
 * rings that are certainly complete, and the agent continues to record into the rings for a while.
 */
void recorder_keep(struct recorder *r);

/**
 * recorder_stop() - final drain, index, end of file
 * @finish: reason, restored, stop times and sideband are set by the caller; the rest is filled
 * @ending: NULL: no index and no symbols
 * Return: 0, or the first error of the file.
 */
int recorder_stop(struct recorder *r, struct mp_finish *finish, struct mp_losses *losses,
		  const struct recorder_ending *ending);

/* Return: the path of the oldest piece that was not deleted, after recorder_stop(). */
const char *recorder_oldest_piece(const struct recorder *r);

/* Fills @out with the top stacks (at most @max) by live bytes, or by bytes of the program's own
 * mappings, for the closing summary.  To be called after recorder_stop().  Return: their number. */
enum recorder_top_by { RECORDER_LIVE, RECORDER_MAPPED };
struct recorder_top {
	uint32_t stack, n, flags; /* n: number of frames */
	int64_t bytes, count;	  /* of live blocks or mappings */
};
uint32_t recorder_top(struct recorder *r, enum recorder_top_by by, struct recorder_top *out,
		      uint32_t max);
/* Copies the addresses of @top's stack to @pc, which has room for SS_MAX_FRAMES. */
void recorder_pcs(const struct recorder *r, const struct recorder_top *top, uint64_t *pc);
/* Frees a recorder after recorder_stop().  @r can be NULL. */
void recorder_free(struct recorder *r);

#endif
