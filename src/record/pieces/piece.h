/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rotated recordings.  A piece is a complete recording: it begins with the blocks that are live at
 * its start.  When the file is large enough, the next piece begins.
 */
#ifndef RECORD_PIECES_PIECE_H
#define RECORD_PIECES_PIECE_H

#include <stdbool.h>
#include <stdint.h>
#include "record/pieces/piece_thread.h"
#include "record/recorder.h"

/* The piece that is being written.  The aggregator's, except for what @closer says. */
struct piece {
	uint32_t number;
	uint64_t base_ns; /* when it began */
	/* Size of the file's head (before its own events); size at which to begin the next piece */
	uint64_t head_bytes, next_bytes;
	uint64_t head_events;  /* events in the head, which are carried blocks, not calls */
	uint64_t bytes_before; /* bytes of the previous pieces */
	struct recorder_progress before; /* sums at its beginning */
	struct piece_thread closer;
};

struct aggregator;
struct mpf_writer;
/* Writes to @file from now on, with --jobs 2 or more in a thread of its own (mpf_write_behind()). */
void piece_take_file(struct aggregator *a, struct mpf_writer *file);
/* Starts the thread @closer, if the recording is rotated or has only the live heap.  Return: as
 * piece_thread_start(). */
int piece_start(struct aggregator *a);
/* Begins the next piece if the file is large enough.  Called by the aggregator between two
 * batches. */
void piece_next(struct aggregator *a, uint64_t now_ns);
/* Writes the head of the current piece: the live blocks, with all that describes them. */
void piece_put_head(struct aggregator *a);
/* Writes the index of the current piece. */
void piece_put_index(struct aggregator *a, const struct recorder_ending *ending);
/* Return: all distinct addresses of the stacks in the current piece (@all: in all pieces),
 * ascending; the caller frees the array.  NULL: out of memory. */
uint64_t *piece_addresses(const struct aggregator *a, bool all, uint64_t *n);

#endif
