/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers (columns) of the registers that an unwinder tracks.  They are the same on every
 * architecture, so that rules, raw stacks and walks do not depend on it.  arch.unwind.column[] maps
 * DWARF registers to columns; on x86-64 the numbers are equal (psABI 3.6.2).  Freestanding.
 */
#ifndef FORMATS_COLUMN_H
#define FORMATS_COLUMN_H

#define UW_MAX_REGS 17

enum uw_column {
	UW_REG_FP = 6, /* the frame pointer, in code that has one */
	UW_REG_SP = 7, /* the stack pointer */
	/* The link register, on architectures whose calls store the return address in one */
	UW_REG_LR = 15,
	UW_REG_PC = UW_MAX_REGS - 1,
};

#endif
