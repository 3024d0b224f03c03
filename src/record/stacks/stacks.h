/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interned stacks of the recording.  A frame uses 4 bytes, each
 * distinct address about 30 more. */
#ifndef RECORD_STACKS_STACKS_H
#define RECORD_STACKS_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/intern.h"

struct stack {
	uint64_t first; /* index of its frames in stacks.frame */
	uint32_t n, flags;
	bool inner;	/* one of its callers is an allocator function */
	uint32_t piece; /* number of the last piece that contains it, + 1 */
};

struct stacks {
	struct stack *at; /* [1 .. n): id 0 is "no stack" */
	uint32_t n, cap;
	uint32_t *frame; /* ids of addresses, innermost first */
	uint64_t nframes, cap_frames;
	struct intern *addresses;
	uint64_t *address; /* [id]; [0] is unused */
	uint32_t naddresses, cap_addresses;
	uint32_t *table; /* hash table of ids, open addressing */
	uint32_t table_size;
};

/* Return: 0 or -ENOMEM. */
int stacks_init(struct stacks *s);
void stacks_free(struct stacks *s);
/* Copies the addresses of stack @id to @pc, which has room for SS_MAX_FRAMES. */
void stacks_pcs(const struct stacks *s, uint32_t id, uint64_t *pc);
/* Interns a stack of @n frames, at most SS_MAX_FRAMES.  Return: its id, with *@fresh set to whether
 * it is new; 0 when out of memory. */
uint32_t stacks_intern(struct stacks *s, const uint64_t *pc, uint32_t n, uint32_t flags,
		       bool *fresh);

/* Return: the distinct addresses of the stacks from id @from on that a piece contains, ascending; the
 * caller frees the array.  @piece: stack.piece; 0: of any piece.  NULL: out of memory. */
uint64_t *stacks_addresses(const struct stacks *s, uint32_t from, uint32_t piece, uint64_t *n);

#endif
