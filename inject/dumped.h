/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Unwinding a copied stack by the tables of a session block: what the agent could not walk, and
 * what the kernel's samples carry. */
#ifndef INJECT_DUMPED_H
#define INJECT_DUMPED_H

#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "formats/session.h"
#include "unwind/step.h"

/* A thread. */
struct dumped {
	const struct arch *arch;
	uint64_t regs[UW_MAX_REGS]; /* by column */
	uint32_t valid;		    /* bit i: regs[i] is known */
	bool interrupted;     /* anywhere; else it is at the first instruction of a function */
	const uint8_t *stack; /* bytes from the stack pointer up */
	uint32_t stack_bytes;
};

/**
 * dumped_unwind() - the stack, innermost first
 * @block, @length: mapping with the tables; the target may write to it: everything is checked
 * @pc: room for @max >= 2 addresses
 * @flags: enum ss_stack_flags
 * @unknown: ended at code that has no table yet
 * Return: number of addresses, at least 1.
 */
uint32_t dumped_unwind(const struct ss_control *block, uint64_t length, const struct dumped *d,
		       uint64_t *pc, uint32_t max, uint32_t *flags, bool *unknown);

#endif
