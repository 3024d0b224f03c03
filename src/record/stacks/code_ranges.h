/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which code the process has at an address at the time of an event.  Where code was replaced by other code, stacks are
 * recorded with other addresses than in the process, so that an address in the recording means one function only.
 */
#ifndef RECORD_STACKS_CODE_RANGES_H
#define RECORD_STACKS_CODE_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/check.h"
#include "lib/vec.h"
#include "record/clock.h"

/* From a time on, certain code is at some addresses of the process. */
struct code_change {
	uint64_t start, end; /* in the process */
	uint64_t add;	     /* to be added to them in the recording */
	uint64_t since_ns;   /* CLOCK_MONOTONIC */
	/* Until then the agent used the unwind tables of other code; UINT64_MAX: until a later change */
	uint64_t doubtful_until_ns;
	bool
	    is_trusted; /* nothing changes but that the agent has the tables of this code from now on */
};

struct code_range {
	uint64_t start, end, add;
	uint64_t doubtful_until; /* ticks */
};

/* If zeroed: every address is recorded as it is. */
struct code_ranges {
	VEC(struct code_range) now;
	VEC(struct code_change) later; /* in the order of time */
	uint64_t due; /* ticks at which code_ranges_reach() has something to do; 0: never */
};

void code_ranges_free(struct code_ranges *r);
/* Return: 0 or -ENOMEM. */
__must_check int code_ranges_add(struct code_ranges *r, const struct code_change *c,
				 const struct clock *clock);

/* Makes the changes up to @ticks effective.  Return: whether the same addresses can now be other code, or their
 * stacks are no longer doubtful. */
bool code_ranges_reach(struct code_ranges *r, uint64_t ticks, const struct clock *clock);

/**
 * code_ranges_apply() - convert a stack of the process to addresses of the recording
 * @pc, @n: the stack, innermost frame first, converted in place
 * @flags: enum of ss_stack.flags
 * @by_agent: the agent has found the callers: the stack is cut behind the first frame in doubtful code
 * Return: the number of frames.
 */
uint32_t code_ranges_apply(const struct code_ranges *r, uint64_t *pc, uint32_t n, uint32_t *flags,
			   bool by_agent);

#endif
