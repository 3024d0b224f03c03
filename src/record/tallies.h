/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What each stack and each thread allocated so far, for views (record/view.h), and what each stack mapped,
 * for the closing summary.  What is live is in record/levels.h.
 *
 * An allocation is temporary if its thread ends the block before it allocates again.  So each thread has at
 * most one block that can become temporary, its latest one.  These blocks are found by address, because
 * another thread can end one, after which the address can be that of a new block.
 */
#ifndef RECORD_TALLIES_H
#define RECORD_TALLIES_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/estimate.h"
#include "lib/vec.h"
#include "record/thread_numbers.h"

/* Of a stack.  Small, because there can be millions. */
struct tally {
	uint64_t allocations, allocated_bytes, temporary, temporary_bytes;
};

struct thread_tally {
	uint64_t allocations, allocated_bytes, temporary;
	uint32_t tid;
};

/* What a stack mapped itself: as in struct recorder_progress. */
struct mapped_tally {
	uint64_t bytes, mappings;
};

#define LATEST_LISTS 256u

/* The latest block of the thread that owns a ring. */
struct latest {
	uint64_t addr;	/* 0: none */
	uint32_t next;	/* ring in the same list + 1 */
	uint32_t tally; /* of the thread: index in tallies.threads + 1; 0: not known yet */
};

struct tallies {
	/* By stack id.  Each is as long as the highest stack needs that has something in it. */
	VEC(struct tally) stacks;
	VEC(double) live_variance; /* of the estimate of the live bytes */
	VEC(struct mapped_tally) mapped;
	VEC(struct thread_tally) threads; /* by number */
	struct thread_numbers numbers;
	struct latest *latest;	     /* [ring] */
	uint32_t list[LATEST_LISTS]; /* first ring + 1, by address */
};

/* An allocation by the thread @tid, which owns @ring; 0: it is not known. */
struct tallied {
	uint32_t ring, tid, stack;
	uint64_t addr;
	struct estimate of; /* what it represents */
};

/* Fills the zeroed @t for @rings rings.  Return: 0 or -ENOMEM; tallies_free() in both cases. */
int tallies_init(struct tallies *t, uint32_t rings);
void tallies_free(struct tallies *t);

/* Counts an allocation.  Return: 0 or -ENOMEM. */
int tallies_allocated(struct tallies *t, const struct tallied *a);
/* tallies_allocated() for a temporary block, with its end. */
int tallies_pair(struct tallies *t, const struct tallied *a);
/* Notes that the thread that owns @ring ends a block.  Return: whether that can be temporary: it was the
 * latest of the thread. */
bool tallies_ended(struct tallies *t, uint32_t ring, uint64_t addr);
/* Counts a temporary allocation by the owner of @ring, which represents @blocks, of @bytes in all. */
void tallies_temporary(struct tallies *t, uint32_t ring, uint32_t stack, uint64_t blocks,
		       uint64_t bytes);
/* Adds to the variance of a stack's live bytes.  @variance: negative when a
 * block ends. */
void tallies_vary(struct tallies *t, uint32_t stack, double variance);

/* Return: what tallies_vary() has added up. */
double tallies_variance(const struct tallies *t, uint32_t stack);
/* Counts a mapping that the program made itself.  Return: 0 or -ENOMEM. */
int tallies_map(struct tallies *t, uint32_t stack, uint64_t bytes);
/* Return: what the stack mapped. */
struct mapped_tally tallies_mapped(const struct tallies *t, uint32_t stack);

#endif
