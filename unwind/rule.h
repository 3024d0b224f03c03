/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compact unwind rules: how to get from one frame to its caller at a given instruction.  Built by
 * the recorder from call frame information (unwind/table.h), read by the agent in the target and
 * by the recorder on copied stacks (unwind/walk.h).  Freestanding.
 * Registers are columns (formats/column.h).
 */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include <stdint.h>
#include "formats/column.h"

enum uw_rule_flags {
	UW_OUTERMOST = 1,  /* the return address is undefined: no caller */
	UW_SIGNAL = 2,	   /* signal frame: the caller's pc is exact, not a return address */
	UW_FULL = 4,	   /* take uw_full[full]: the simple fields do not describe this row */
	UW_INVALID = 8,	   /* no rule here, or one we do not understand */
	UW_PC_TAGGED = 16, /* the return address has other bits than UW_PC_BITS: see there */
	UW_AT_CALLS = 32,  /* by a function's prologue: holds at return addresses only */
	UW_SWITCH = 64,	   /* the caller's frame is on another stack */
};

/* Of a return address, where processors keep more in it: the Thumb or MIPS16 mode in bit 0,
 * AArch64's signature (PAC) above the address. */
#define UW_PC_BITS 0x0000fffffffffffeull

#define UW_FP_SAME INT16_MIN /* the frame pointer register keeps its value */

/*
 * The simple form, 16 bytes: CFA = reg + cfa_off with reg the stack or frame pointer, return
 * address at CFA + ra_off, frame pointer unchanged or at CFA + fp_off.  Other callee-saved
 * registers may be saved too: only a walk that needs one looks at uw_full[full].
 */
struct uw_rule {
	uint8_t flags;
	uint8_t cfa_is_fp; /* 1: CFA is relative to the frame pointer, 0: to the stack pointer */
	int16_t fp_off;
	int32_t cfa_off;
	int32_t ra_off;
	uint32_t full; /* index of the complete rule */
};

enum uw_where {
	UW_SAME = 0,  /* unchanged */
	UW_UNDEFINED, /* lost */
	UW_AT_CFA,    /* at memory CFA + off */
	UW_CFA_PLUS,  /* value CFA + off */
	UW_AT_REG,    /* at memory (the register reg) + off: signal frames */
	UW_REG,	      /* in register off */
};

enum uw_cfa {
	UW_CFA_REG = 0, /* CFA = cfa_reg + cfa_off */
	UW_CFA_DEREF,	/* CFA = *(cfa_reg + cfa_off): realigned stacks, signal frames */
	UW_CFA_PLT,	/* x86-64 PLT entry: rsp + 8 + ((rip & 15) >= cfa_off ? 8 : 0) */
	/* Go's asmcgocall: so far below the top of a goroutine's stack as the word at cfa_reg +
	 * cfa_off says; the word behind it points to the goroutine, whose second word is the top */
	UW_CFA_GOROUTINE,
	UW_CFA_LOST, /* cannot be told */
};

/* The complete form. */
struct uw_full {
	uint8_t cfa_kind, cfa_reg;
	uint8_t flags;	/* as in uw_rule */
	uint8_t at_reg; /* base register of UW_AT_REG */
	int32_t cfa_off;
	uint8_t where[UW_MAX_REGS]; /* [UW_REG_PC]: the return address */
	uint8_t pad[3];
	int32_t off[UW_MAX_REGS];
};

#endif
