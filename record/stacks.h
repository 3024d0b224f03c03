/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recording's stacks: each once, by content, with its live bytes and blocks.  A frame takes 4
 * bytes, each address it may have 30 more. */
#ifndef RECORD_STACKS_H
#define RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/intern.h"

struct stack {
	uint64_t first; /* index of its frames in stacks.frame */
	uint32_t n, flags;
	bool inner;	/* made inside an allocator function */
	uint32_t piece; /* the last one that it is in, + 1 */
	int64_t live_bytes, live_blocks;
	uint64_t mapped_bytes, mappings; /* as in struct recorder_progress */
};

struct stacks {
	struct stack *at; /* [1 .. n): id 0 is "no stack" */
	uint32_t n, cap;
	uint32_t *frame; /* ids of addresses, innermost first */
	uint64_t nframes, cap_frames;
	struct intern *addresses;
	uint64_t *address; /* [id]; [0] is none's */
	uint32_t naddresses, cap_addresses;
	uint32_t *table; /* open addressing: ids */
	uint32_t table_size;
};

int stacks_init(struct stacks *s);
void stacks_free(struct stacks *s);
/* The addresses of stack @id into @pc, which has room for SS_MAX_FRAMES. */
void stacks_pcs(const struct stacks *s, uint32_t id, uint64_t *pc);
/* @n: at most SS_MAX_FRAMES.  Return: id; *@fresh tells whether it is new; 0 when out of memory. */
uint32_t stacks_intern(struct stacks *s, const uint64_t *pc, uint32_t n, uint32_t flags,
		       bool *fresh);

#endif
