/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Breakpoints in a process of one thread that is traced and stands: by the debug registers where
 * the architecture has them in struct user (ptrace(2), PTRACE_POKEUSER), so that no byte changes;
 * else by an instruction that is put into the text.
 */
#ifndef ATTACH_BREAKPOINT_H
#define ATTACH_BREAKPOINT_H

#include "attach/target.h"
#include "lib/check.h"

struct breakpoint {
	uint64_t addr; /* 0: not set */
	uint8_t index; /* of the debug register: 0 to 3, another one for each */
	uint8_t length;
	uint8_t saved[sizeof(((struct arch_code *)0)->bytes)];
};

/**
 * breakpoint_set - the program is to stop before the instruction at @addr
 * @addr: a function's address as symbols and link registers have it (bit 0: Thumb code)
 * Return: 0 or -errno.
 */
__must_check int breakpoint_set(struct target *t, struct breakpoint *b, uint64_t addr);
/* Takes it away, if it is set.  Return: 0 or -errno. */
__must_check int breakpoint_clear(struct target *t, struct breakpoint *b);
/* Return: whether one that was reached must be taken away before the program can go on. */
bool breakpoint_blocks(const struct target *t);

#endif
