/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds blocks of a process in a recording of it, to learn where they were allocated. */
#ifndef MODEL_MATCH_H
#define MODEL_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

struct model;

enum match_state {
	MATCH_UNKNOWN, /* not live in the recording at that moment, or of another size */
	MATCH_KNOWN,
	MATCH_FREED, /* known, and freed after the moment */
};

struct match {
	uint64_t addr, usable; /* input: usable bytes of the block */
	uint64_t size;	       /* output: bytes requested */
	uint64_t time_ns;
	uint32_t stack, tid;
	enum match_state state;
	bool older; /* allocated before the recording: carried over from another recorder */
};

/**
 * match_find() - find blocks that were live at a moment
 * @list: sorted by address; the results are filled in
 * @at_ns: the moment, in the recording's time
 *
 * Reads the recording again, up to its end.  Return: 0, or a negative errno with @err filled.
 */
int match_find(const struct model *m, struct match *list, size_t n, uint64_t at_ns,
	       struct mp_err *err);

/* Replaces all sums of @m by those of the known origins; the others are counted without a stack.
 * For the writers of live blocks, which use COST_LEAKED. */
void match_weigh(struct model *m, const struct match *list, size_t n);

#endif
