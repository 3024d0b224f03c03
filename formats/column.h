/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The registers an unwinder keeps, as columns: the same few numbers on every architecture, so that
 * rules, raw stacks and walks need not know which it is.  struct arch, column[], gives the column
 * of a DWARF register; on x86-64 they are the same numbers (psABI 3.6.2).  Freestanding.
 */
#ifndef FORMATS_COLUMN_H
#define FORMATS_COLUMN_H

#define UW_MAX_REGS 17

enum uw_column {
	UW_REG_FP = 6,	/* the frame pointer, where code keeps one */
	UW_REG_SP = 7,	/* the stack pointer */
	UW_REG_LR = 15, /* the link register, where a call leaves the return address in one */
	UW_REG_PC = UW_MAX_REGS - 1,
};

#endif
