/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recorder of one process: a reader thread that only drains the agent's rings, a bounded
 * queue, and an aggregator thread that decodes, keeps the live table and writes the file.
 *
 *	recorder_start()	before the hooks go in
 *	recorder_progress()	any time
 *	recorder_stop()		after session_close(): nobody writes to the rings any more
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "formats/file.h"
#include "formats/session.h"
#include "lib/err.h"
#include "record/carry.h"
#include "record/queue.h"
#include "record/select.h"

/* What the caller adds to the end of the file; called with recorder_config.ctx.  Addresses are
 * ascending, each is there once. */
struct recorder_ending {
	/* Puts all modules, for the index. */
	void (*modules)(void *ctx, struct mpf_writer *w);
	/* Puts the symbols of the addresses. */
	void (*symbolize)(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n);
	/* Puts the binaries that the addresses are in; NULL: none. */
	void (*embed)(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n);
};

/* A recording in pieces; each is called with recorder_config.ctx. */
struct recorder_rotation {
	uint64_t bytes; /* a file that has so many is followed by another; 0: never */
	/* Where piece @number goes.  The aggregator's. */
	void (*name)(void *ctx, uint32_t number, char *path, size_t size);
	/* The piece at @path is begun: all that is live is in it.  The aggregator's. */
	void (*begun)(void *ctx, const char *path);
	/* Of all pieces but the last.  Modules: the aggregator's; symbols: another thread's. */
	struct recorder_ending ending;
};

struct recorder_config {
	struct ss_control *block; /* our mapping of the session block: the target may write there */
	const struct ss_control *layout;  /* what is where in it */
	const struct ss_journal *journal; /* ours; hooks come and go in it while it runs */
	uint64_t block_length;
	pid_t pid;
	const char *path;	 /* of the recording */
	struct mp_info info;	 /* start_unix_ns is filled by recorder_start() */
	uint64_t queue_ceiling;	 /* bytes; 0: 256 MiB */
	uint64_t cull_ns;	 /* blocks that live shorter are only counted; 0: none */
	uint32_t max_depth;	 /* innermost frames of a stack that are kept; 0: all */
	struct selection select; /* strings stay the caller's */
	/* Ticks up to which all records are in the rings, when their producer is late; NULL: it is
	 * the thread itself, which is not. */
	const uint64_t *complete_until;
	const struct carry *carry; /* the heap that another recorder left; NULL: none */
	struct recorder_rotation rotation;
	/*
	 * Called by the aggregator: code without a table was met.  Brings the tables up to date;
	 * returns whether anything is new.
	 */
	bool (*code_changed)(void *ctx);
	/* Called by the aggregator: is there a call instruction in front of @pc?  NULL: it is
	 * taken for granted. */
	bool (*follows_call)(void *ctx, uint64_t pc);
	/* Called by the aggregator: the next module that is not in the file yet.  Return: false:
	 * none.  Strings stay valid until the next call. */
	bool (*next_module)(void *ctx, struct mp_module *m);
	void *ctx;
};

struct recorder_progress {
	uint64_t events, allocs, frees, live_blocks, allocated_bytes;
	uint64_t live_bytes, peak_live_bytes;
	uint64_t lost, file_bytes, duration_ns;
	uint64_t live_table_bytes;
	uint64_t foreign_frees, stacks;
	uint64_t mapped_bytes, mappings; /* memory that the program mapped, no allocator for it */
	uint64_t
	    anonymous;	 /* resident in mappings without a file, when last looked: malloc's too */
	uint32_t pieces; /* that ended: the number of the one at hand */
	bool stalled;	 /* nothing could be written for two seconds, though there is something */
	int error;	 /* negative errno: the file cannot be written any more */
	int piece_error; /* why no next piece could begin: the file goes on */
};

struct recorder;

/* Return: 0 with @r running, or a negative errno with @err filled. */
int recorder_start(const struct recorder_config *config, struct recorder **r, struct mp_err *err);
struct recorder_progress recorder_progress(struct recorder *r);
/* Paused: blocks allocated from now on are left out, those that were taken before are still
 * followed. */
void recorder_pause(struct recorder *r, bool paused);
bool recorder_is_paused(struct recorder *r);
/* Notes a moment by @name in the recording.  Return: 0, -EAGAIN when too many wait, -ENOMEM. */
int recorder_mark(struct recorder *r, const char *name);

/* Where a flush drew the line: all events up to @time_ns, and no other, are in the first
 * @file_bytes of the recording. */
struct recorder_boundary {
	uint64_t barrier; /* counts flushes */
	uint64_t time_ns, events, file_bytes;
};

/**
 * recorder_flush() - an ordered barrier through rings and queue, while recording goes on
 * Whatever happened in the target before the call is in the file when it returns.  Any number of
 * threads may wait at once.
 * Return: 0 with @b filled; -ESHUTDOWN when the recording ended first (then its file is whole).
 */
int recorder_flush(struct recorder *r, struct recorder_boundary *b);

/* The target is let go, or gone, now: this is the end of the recording, also if it takes a while to
 * write what has come. */
void recorder_let_go(struct recorder *r);

/* At recorder_stop() the session stays for another recorder: only what is surely complete is taken
 * from the rings, and the agent records on into them for a while. */
void recorder_keep(struct recorder *r);

/**
 * recorder_stop() - final drain, index, end of file
 * @finish: reason, restored, stop times and sideband are the caller's; the rest is filled
 * @ending: NULL: no index and no symbols
 * Return: 0, or the first error of the file.
 */
int recorder_stop(struct recorder *r, struct mp_finish *finish, struct mp_losses *losses,
		  const struct recorder_ending *ending);

/* Top stacks by live bytes, or by the bytes of the program's own mappings, for the closing summary:
 * fills up to @max.  After recorder_stop().  Return: how many. */
enum recorder_top_by { RECORDER_LIVE, RECORDER_MAPPED };
struct recorder_top {
	uint32_t stack, n, flags; /* n: frames */
	int64_t bytes, count;	  /* of live blocks, or of mappings */
};
uint32_t recorder_top(struct recorder *r, enum recorder_top_by by, struct recorder_top *out,
		      uint32_t max);
/* The addresses of one of them into @pc, which has room for SS_MAX_FRAMES. */
void recorder_pcs(const struct recorder *r, const struct recorder_top *top, uint64_t *pc);
void recorder_free(struct recorder *r);

#endif
