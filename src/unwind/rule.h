/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compact unwind rules: how to find the caller of a frame at a given instruction.  The recorder
 * builds them (unwind/build.h).  The agent uses them in the target, the recorder on copied stacks
 * (unwind/step.h).  Freestanding.  Registers are columns (formats/column.h).
 */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include <stdint.h>
#include "formats/column.h"

enum uw_rule_flags {
	UW_OUTERMOST = 1,  /* the return address is undefined: no caller */
	UW_SIGNAL = 2,	   /* signal frame: the caller's pc is exact, not a return address */
	UW_FULL = 4,	   /* use uw_full[full]: the simple fields do not describe this row */
	UW_INVALID = 8,	   /* no rule, or one that is not supported */
	UW_PC_TAGGED = 16, /* the return address can have other bits than UW_PC_BITS */
	UW_AT_CALLS = 32,  /* derived from a prologue: valid at return addresses only */
	UW_SWITCH = 64,	   /* the caller's frame is on another stack */
};

/* The bits of a return address that are the address.  Others are the Thumb or MIPS16 mode in bit 0
 * and AArch64's signature (PAC) in the upper bits. */
#define UW_PC_BITS 0x0000fffffffffffeull

#define UW_FP_SAME INT16_MIN /* the frame pointer register is unchanged */

/*
 * The simple form, 16 bytes: CFA = reg + cfa_off where reg is the stack or frame pointer; return
 * address at CFA + ra_off; frame pointer unchanged or at CFA + fp_off.  Other callee-saved
 * registers can be saved, too: a walk that needs one uses uw_full[full].
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
	/* Go's asmcgocall: the word at cfa_reg + cfa_off is the distance of the CFA from the top
	 * of a goroutine's stack.  The next word points to the goroutine, whose second word is that
	 * top. */
	UW_CFA_GOROUTINE,
	UW_CFA_LOST, /* not known */
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
