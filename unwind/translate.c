/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One row of call frame information as a compact rule.  What struct uw_full cannot say becomes "no
 * rule", never a guess. */
#include "unwind/translate.h"

#include <dwarf.h>
#include <string.h>
#include "unwind/step.h"

/* lit0 .. lit31, const1u and so on in a PLT expression. */
static bool is_plt(const Dwarf_Op *op, size_t n, int32_t *threshold)
{
	/* breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: as binutils write it. */
	if (n != 9 || op[0].atom != DW_OP_breg7 || op[0].number != 8 ||
	    op[1].atom != DW_OP_breg16 || op[2].atom != DW_OP_lit15 || op[3].atom != DW_OP_and ||
	    op[4].atom < DW_OP_lit0 || op[4].atom > DW_OP_lit31 || op[5].atom != DW_OP_ge ||
	    op[6].atom != DW_OP_lit3 || op[7].atom != DW_OP_shl || op[8].atom != DW_OP_plus)
		return false;
	*threshold = op[4].atom - DW_OP_lit0;
	return true;
}

/* register + offset in either spelling. */
static bool is_breg(const Dwarf_Op *op, uint32_t *reg, int64_t *off)
{
	if (op->atom == DW_OP_bregx) {
		*reg = (uint32_t)op->number;
		*off = (int64_t)op->number2;
	} else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = op->atom - DW_OP_breg0;
		*off = (int64_t)op->number;
	} else {
		return false;
	}
	return *reg < UW_MAX_REGS && *off == (int32_t)*off;
}

static bool translate_cfa(Dwarf_Frame *frame, struct uw_full *f)
{
	size_t n;
	Dwarf_Op *op;
	uint32_t reg;
	int64_t off;

	if (dwarf_frame_cfa(frame, &op, &n) || !n)
		return false;
	if (is_plt(op, n, &f->cfa_off)) {
		f->cfa_kind = UW_CFA_PLT;
		f->cfa_reg = UW_REG_SP;
		return true;
	}
	if (!is_breg(op, &reg, &off))
		return false;
	if (n == 1)
		f->cfa_kind = UW_CFA_REG;
	else if (n == 2 && op[1].atom == DW_OP_deref)
		f->cfa_kind = UW_CFA_DEREF;
	else
		return false;
	f->cfa_reg = (uint8_t)reg;
	f->cfa_off = (int32_t)off;
	return true;
}

static bool translate_register(Dwarf_Frame *frame, int i, struct uw_full *f)
{
	Dwarf_Op mem[3], *op;
	int64_t off = 0;
	uint32_t reg;
	size_t n;

	if (dwarf_frame_register(frame, i, mem, &op, &n))
		return false;
	if (!n) {
		f->where[i] = op ? UW_UNDEFINED : UW_SAME;
		return true;
	}
	if (op[0].atom == DW_OP_regx && n == 1) {
		f->where[i] = UW_REG;
		f->off[i] = (int32_t)op[0].number;
		return op[0].number < UW_MAX_REGS;
	}
	if (op[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n == 1) {
		f->where[i] = UW_AT_CFA;
		return true;
	}
	if (op[1].atom == DW_OP_plus_uconst || op[1].atom == DW_OP_consts) {
		off = (int64_t)op[1].number;
		f->where[i] = n == 3 && op[2].atom == DW_OP_stack_value ? UW_CFA_PLUS : UW_AT_CFA;
		if (n > 2 && f->where[i] != UW_CFA_PLUS)
			return false;
	} else if (n == 2 && op[1].atom == DW_OP_stack_value) {
		f->where[i] = UW_CFA_PLUS;
	} else if (n == 2 && is_breg(&op[1], &reg, &off)) {
		/* An expression that does not use the CFA: signal frames, realigned stacks. */
		if (f->at_reg && f->at_reg != reg)
			return false;
		f->at_reg = (uint8_t)reg;
		f->where[i] = UW_AT_REG;
	} else {
		return false;
	}
	f->off[i] = (int32_t)off;
	return off == (int32_t)off;
}

enum { DWARF_RAX = 0, DWARF_RBX = 3 };

/*
 * elfutils 0.188 gives the "same value" that the x86-64 ABI promises for rbx to rax: without an
 * explicit rule rbx reads as undefined and rax as kept.  Any walk through code whose CFA is in rbx
 * (_dl_runtime_resolve) would end there.
 */
static void correct_abi_default(Dwarf_Frame *frame, struct uw_full *f)
{
	Dwarf_Op mem[3], *op;
	size_t n;

	if (f->where[DWARF_RBX] == UW_UNDEFINED &&
	    !dwarf_frame_register(frame, DWARF_RAX, mem, &op, &n) && (n || !op))
		f->where[DWARF_RBX] = UW_SAME;
}

/* What a callee saves, and the return address; other registers are lost by any call. */
static const uint8_t preserved[] = {3, 6, 7, 12, 13, 14, 15, 16};

uint32_t translate_frame(Dwarf_Frame *frame, bool signal, struct rule_set *set)
{
	struct uw_full f;

	memset(&f, 0, sizeof(f));
	memset(f.where, UW_UNDEFINED, sizeof(f.where));
	if (!translate_cfa(frame, &f))
		return 0;
	f.flags = signal ? UW_SIGNAL : 0;
	if (signal) {
		for (int i = 0; i < UW_MAX_REGS; i++) {
			if (!translate_register(frame, i, &f))
				return 0;
		}
	} else {
		for (size_t i = 0; i < sizeof(preserved); i++) {
			if (!translate_register(frame, preserved[i], &f))
				return 0;
		}
	}
	correct_abi_default(frame, &f);
	/* Both are what "the caller's stack pointer is the CFA" looks like. */
	if (f.where[UW_REG_SP] == UW_UNDEFINED ||
	    (f.where[UW_REG_SP] == UW_CFA_PLUS && !f.off[UW_REG_SP]))
		f.where[UW_REG_SP] = UW_SAME;
	if (f.where[UW_REG_PC] == UW_UNDEFINED || f.where[UW_REG_PC] == UW_SAME)
		f.flags |= UW_OUTERMOST;
	return rule_set_add(set, &f);
}
