/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rotated recordings.  A piece is a complete recording: it begins with the blocks that are live at
 * its start.  When the file is large enough, the next piece begins.  A separate thread writes
 * symbols and end of the previous piece and creates the files: unlike the aggregator it keeps the
 * file privileges that memprof started with.
 */
#ifndef RECORD_PIECE_H
#define RECORD_PIECE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "record/recorder.h"

/* A job for the thread. */
enum piece_job { PIECE_NOTHING, PIECE_CREATE, PIECE_CLOSE, PIECE_QUIT };

/* The data of a piece's end. */
struct piece_end {
	struct mpf_writer *file;
	uint64_t *pc, n; /* addresses in the piece; owned */
	struct mp_losses losses;
	struct mp_finish finish;
};

/* The piece that is being written. */
struct piece {
	uint32_t number;
	uint64_t base_ns; /* when it began */
	/* Size of the file's head (before its own events); size at which to begin the next piece */
	uint64_t head_bytes, next_bytes;
	uint64_t head_events;  /* events in the head, which are carried blocks, not calls */
	uint64_t bytes_before; /* bytes of the previous pieces */
	struct recorder_progress before; /* sums at its beginning */

	/* Shared with the thread. */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum piece_job job;
	char path[4096];
	struct mp_info info;
	char *text[3]; /* the strings of info; owned */
	struct mpf_writer *created;
	struct piece_end end;
	int error, create_error; /* error of a finished piece; why a new one could not be created */
};

/* Starts the thread, if the recording is rotated.  To be called before the recorder drops
 * privileges.  Return: 0 or a negative errno. */
int piece_start(struct recorder *r);
/* Begins the next piece if the file is large enough.  Called by the aggregator between two
 * batches. */
void piece_next(struct recorder *r, uint64_t now_ns);
/* Waits until all pieces but the last are complete and ends the thread.  Return: 0, or the first
 * error of their files. */
int piece_stop(struct recorder *r);
/* Writes the index of the current piece. */
void piece_put_index(struct recorder *r, const struct recorder_ending *ending);
/* Return: all distinct addresses of the stacks in the current piece (@all: in all pieces),
 * ascending; the caller frees the array.  NULL: out of memory. */
uint64_t *piece_addresses(const struct recorder *r, bool all, uint64_t *n);

#endif
