/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports which stacks are incomplete, where they end and why, and which rely on frame pointers. */
#ifndef EXPORT_LISTS_STACK_ENDS_H
#define EXPORT_LISTS_STACK_ENDS_H

#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>
#include "lib/vec.h"

struct model;

enum stack_end_reason {
	STACK_END_NO_STACK,   /* there is no stack */
	STACK_END_NO_TABLE,   /* at code without unwind information */
	STACK_END_MADE_CODE,  /* the same, at code in no file: made by the program */
	STACK_END_NO_MODULE,  /* at an address where no code is known */
	STACK_END_BAD_FRAME,  /* at a frame whose memory is not consistent */
	STACK_END_TOO_DEEP,   /* there are more frames than are recorded */
	STACK_END_NOT_COPIED, /* too little of the stack was copied */
};

struct stack_end {
	const char *library; /* name of the last frame's file; NULL: none */
	enum stack_end_reason reason;
	uint64_t stacks, count; /* @count: their allocations and mappings, or page faults */
};

struct stack_ends {
	VEC(struct stack_end) list;   /* sorted by count, highest first */
	uint64_t fp_stacks, fp_count; /* with callers that were found by frame pointers */
};

/* Return: 0 with @e filled, to be freed by vec_free(&e->list), or -ENOMEM.  Valid as long as @m. */
int stack_ends_find(const struct model *m, struct stack_ends *e);

/* Writes lines for the summary, to follow those about stacks; @what: allocations, or faults. */
void stack_ends_text(const struct model *m, const char *what, FILE *out);
/* Writes the members incomplete_stacks and frame_pointer_stacks. */
void stack_ends_json(yajl_gen g, const struct model *m);

#endif
