/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Breakpoints in a stopped tracee that has one thread: an instruction in the text.  Debug registers
 * would leave the text alone, but in some virtual machines they accept every value and never stop
 * the program.
 */
#ifndef ATTACH_BREAKPOINT_H
#define ATTACH_BREAKPOINT_H

#include <stdbool.h>
#include "attach/target.h"
#include "lib/check.h"

struct breakpoint {
	uint64_t addr; /* 0: not set */
	uint8_t length;
	uint8_t saved[sizeof(((struct arch_code *)0)->bytes)];
};

/**
 * breakpoint_set() - stop the program before it executes the instruction at @addr
 * @addr: a function's address as symbols and link registers have it (bit 0: Thumb code)
 * Return: 0 or -errno.
 */
__must_check int breakpoint_set(struct target *t, struct breakpoint *b, uint64_t addr);
/* Removes the breakpoint if it is set; to be done before the program continues from it.  Return: 0 or
 * -errno. */
__must_check int breakpoint_clear(struct target *t, struct breakpoint *b);
/**
 * breakpoint_hit() - did the thread stop at the breakpoint?
 * @th: stopped, with its registers read
 *
 * If so, moves its pc to the address of the breakpoint.  Return: 1 or 0, or -errno.
 */
int breakpoint_hit(struct target *t, struct thread *th, const struct breakpoint *b);

#endif
