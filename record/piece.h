/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording in pieces.  A piece is a recording by itself: what is live at its beginning stands at
 * its head.  The next one begins once the file is large enough, and the one before gets its symbols
 * and its end from a thread of its own, which also creates the files: unlike the aggregator it may
 * write wherever memprof could when it began.
 */
#ifndef RECORD_PIECE_H
#define RECORD_PIECE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "record/recorder.h"

/* What there is to do for the thread. */
enum piece_job { PIECE_NOTHING, PIECE_CREATE, PIECE_CLOSE, PIECE_QUIT };

/* The end of a piece. */
struct piece_end {
	struct mpf_writer *file;
	uint64_t *pc, n; /* addresses in it; owned */
	struct mp_losses losses;
	struct mp_finish finish;
};

/* Which piece is being written. */
struct piece {
	uint32_t number;
	uint64_t base_ns; /* when it began */
	uint64_t head_bytes,
	    next_bytes;	       /* of the file: without its own events; when to look again */
	uint64_t head_events;  /* that are no calls: what was live */
	uint64_t bytes_before; /* of the pieces before */
	struct recorder_progress before; /* sums when it began */

	/* The thread's. */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum piece_job job;
	char path[4096];
	struct mp_info info;
	char *text[3]; /* of it: its own copies */
	struct mpf_writer *created;
	struct piece_end end;
	int error, create_error; /* of a piece that ended; why none could begin */
};

/* Before the recorder gives up privileges.  Return: 0 or a negative errno. */
int piece_start(struct recorder *r);
/* The aggregator's, between two batches: begins another piece when it is time. */
void piece_next(struct recorder *r, uint64_t now_ns);
/* All pieces but the last are whole.  Return: 0, or the first error of their files. */
int piece_stop(struct recorder *r);
/* Writes the index of the piece at hand. */
void piece_put_index(struct recorder *r, const struct recorder_ending *ending);
/* All distinct addresses of the stacks in the piece at hand, or in @all, ascending; the caller
 * frees it.  NULL: out of memory. */
uint64_t *piece_addresses(const struct recorder *r, bool all, uint64_t *n);

#endif
