/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Unwinds a copied stack by the tables of a session block: stacks that the agent could not walk,
 * and those in the kernel's samples. */
#ifndef INJECT_BLOCK_DUMPED_H
#define INJECT_BLOCK_DUMPED_H

#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "formats/session.h"
#include "unwind/step.h"

/* State of a thread. */
struct dumped {
	const struct arch *arch;
	uint64_t regs[UW_MAX_REGS]; /* by DWARF register column */
	uint32_t valid;		    /* bit i: regs[i] is known */
	bool interrupted;	    /* at any instruction; false: at the first one of a function */
	const uint8_t *stack;	    /* bytes from the stack pointer up */
	uint32_t stack_bytes;
};

/**
 * dumped_unwind() - unwind the stack, innermost address first
 * @block, @length: mapping with the tables; the target can write to it, so everything is checked
 * @pc: room for @max >= 2 addresses
 * @flags: set to enum ss_stack_flags
 * @unknown: set if the stack ended at code that has no table yet
 * Return: number of addresses, at least 1.
 */
uint32_t dumped_unwind(const struct ss_control *block, uint64_t length, const struct dumped *d,
		       uint64_t *pc, uint32_t max, uint32_t *flags, bool *unknown);

#endif
