/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Breakpoints in a stopped tracee that has one thread.  Where the architecture's debug registers
 * are in struct user (ptrace(2), PTRACE_POKEUSER), they are used and no byte of text changes;
 * elsewhere a breakpoint instruction is written into the text.
 */
#ifndef ATTACH_BREAKPOINT_H
#define ATTACH_BREAKPOINT_H

#include "attach/target.h"
#include "lib/check.h"

struct breakpoint {
	uint64_t addr; /* 0: not set */
	uint8_t index; /* of the debug register: 0 to 3, each breakpoint has its own */
	uint8_t length;
	uint8_t saved[sizeof(((struct arch_code *)0)->bytes)];
};

/**
 * breakpoint_set() - stop the program before it executes the instruction at @addr
 * @addr: a function's address as symbols and link registers have it (bit 0: Thumb code)
 * Return: 0 or -errno.
 */
__must_check int breakpoint_set(struct target *t, struct breakpoint *b, uint64_t addr);
/* Removes the breakpoint if it is set.  Return: 0 or -errno. */
__must_check int breakpoint_clear(struct target *t, struct breakpoint *b);
/* Return: whether a breakpoint that was hit must be removed before the program can continue. */
bool breakpoint_blocks(const struct target *t);

#endif
