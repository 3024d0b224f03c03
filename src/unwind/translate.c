/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Translates rows to rules.  A row that struct uw_full cannot express gets no rule; nothing is
 * guessed. */
#include "unwind/translate.h"

#include <dwarf.h>
#include <string.h>

int cfi_column(const struct arch *arch, uint64_t reg)
{
	return reg < ARCH_DWARF_REGS ? arch->unwind.column[reg] : -1;
}

static bool fits(int64_t value)
{
	return value == (int32_t)value;
}

/* Return: whether the expression is that of binutils for a PLT entry: breg7 8; breg16 0; lit15;
 * and; lit11; ge; lit3; shl; plus (7 is rsp, 16 is rip), with any threshold in place of 11. */
static bool is_plt(struct bytes b, int32_t *threshold)
{
	static const uint8_t code[] = {DW_OP_breg7, 8, DW_OP_breg16, 0,		 DW_OP_lit15,
				       DW_OP_and,   0, DW_OP_ge,     DW_OP_lit3, DW_OP_shl,
				       DW_OP_plus};

	if (b.end - b.p != sizeof(code) || b.p[6] < DW_OP_lit0 || b.p[6] > DW_OP_lit31)
		return false;
	for (size_t i = 0; i < sizeof(code); i++) {
		if (i != 6 && b.p[i] != code[i])
			return false;
	}
	*threshold = b.p[6] - DW_OP_lit0;
	return true;
}

/* Reads "register + offset" at the start of @b. */
static bool take_breg(const struct arch *arch, struct bytes *b, int *column, int64_t *off)
{
	uint64_t op = bytes_take(b, 1), reg;

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		reg = bytes_uleb(b);
	else
		return false;
	*off = bytes_sleb(b);
	*column = cfi_column(arch, reg);
	return !b->lacking && *column >= 0 && fits(*off);
}

static bool translate_cfa(const struct arch *arch, const struct cfi_value *v, struct uw_full *f)
{
	struct bytes b = v->expression;
	int column;
	int64_t off;

	if (v->kind == CFI_REGISTER) {
		column = cfi_column(arch, (uint64_t)v->number);
		off = v->offset;
		f->cfa_kind = UW_CFA_REG;
	} else if (v->kind != CFI_EXPRESSION) {
		return false;
	} else if (arch->unwind.call_push && is_plt(b, &f->cfa_off)) {
		f->cfa_kind = UW_CFA_PLT;
		f->cfa_reg = UW_REG_SP;
		return true;
	} else {
		if (!take_breg(arch, &b, &column, &off))
			return false;
		f->cfa_kind = b.p == b.end ? UW_CFA_REG : UW_CFA_DEREF;
		if (b.p != b.end && (b.end - b.p != 1 || *b.p != DW_OP_deref))
			return false;
	}
	if (column < 0 || !fits(off))
		return false;
	f->cfa_reg = (uint8_t)column;
	f->cfa_off = (int32_t)off;
	return true;
}

/* Translates an expression that adds a constant to the CFA, which is initially on its stack, or
 * that is a register + offset (signal frames, realigned stacks). */
static bool translate_expression(const struct arch *arch, struct bytes b, int i, bool value,
				 struct uw_full *f)
{
	struct bytes again = b;
	int64_t off;
	int column;

	if (b.p < b.end && *b.p == DW_OP_plus_uconst) {
		bytes_take(&b, 1);
		off = (int64_t)bytes_uleb(&b);
		f->where[i] = value ? UW_CFA_PLUS : UW_AT_CFA;
	} else if (take_breg(arch, &again, &column, &off)) {
		if (value || (f->at_reg && f->at_reg != column))
			return false;
		f->at_reg = (uint8_t)column;
		f->where[i] = UW_AT_REG;
		b = again;
	} else {
		return false;
	}
	f->off[i] = (int32_t)off;
	return b.p == b.end && !b.lacking && fits(off);
}

static bool translate_column(const struct arch *arch, const struct cfi_value *v, int i,
			     struct uw_full *f)
{
	int column;

	f->off[i] = (int32_t)v->number;
	switch (v->kind) {
	case CFI_UNSPECIFIED:
		f->where[i] = arch->unwind.preserved >> i & 1 ? UW_SAME : UW_UNDEFINED;
		return true;
	case CFI_UNDEFINED:
		return true;
	case CFI_SAME:
		f->where[i] = UW_SAME;
		return true;
	case CFI_OFFSET:
		f->where[i] = UW_AT_CFA;
		return fits(v->number);
	case CFI_VAL_OFFSET:
		f->where[i] = UW_CFA_PLUS;
		return fits(v->number);
	case CFI_REGISTER:
		column = cfi_column(arch, (uint64_t)v->number);
		if (column >= 0)
			f->where[i] = UW_REG;
		f->off[i] = column;
		return column >= 0 || i != (arch->unwind.call_push ? UW_REG_PC : UW_REG_LR);
	default:
		f->off[i] = 0;
		return translate_expression(arch, v->expression, i, v->kind == CFI_VAL_EXPRESSION,
					    f);
	}
}

/* On architectures with a link register, CFI describes that register, so the rule for the pc is
 * derived from it. */
static void pc_of_link(const struct cfi_value *lr, struct uw_full *f)
{
	f->flags |= UW_PC_TAGGED;
	if (lr->kind == CFI_UNDEFINED) {
		f->where[UW_REG_PC] = UW_UNDEFINED;
	} else if (f->where[UW_REG_LR] == UW_SAME || lr->kind == CFI_UNSPECIFIED) {
		f->where[UW_REG_PC] = UW_REG;
		f->off[UW_REG_PC] = UW_REG_LR;
	} else {
		f->where[UW_REG_PC] = f->where[UW_REG_LR];
		f->off[UW_REG_PC] = f->off[UW_REG_LR];
	}
	/* The call overwrote the caller's value. */
	f->where[UW_REG_LR] = UW_UNDEFINED;
	f->off[UW_REG_LR] = 0;
}

bool cfi_translate(const struct arch *arch, const struct cfi_cie *cie, const struct cfi_state *s,
		   struct uw_full *f)
{
	uint32_t link = arch->unwind.call_push ? 0 : 1u << UW_REG_LR;
	uint32_t wanted = cie->signal ? (1u << UW_MAX_REGS) - 1 : arch->unwind.preserved | link;

	memset(f, 0, sizeof(*f));
	memset(f->where, UW_UNDEFINED, sizeof(f->where));
	if (!translate_cfa(arch, &s->cfa, f))
		return false;
	f->flags = cie->signal ? UW_SIGNAL : 0;
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if (wanted >> i & 1 && !translate_column(arch, &s->column[i], i, f))
			return false;
		if (f->where[i] == UW_UNDEFINED || f->where[i] == UW_SAME)
			f->off[i] = 0;
	}
	if (link)
		pc_of_link(&s->column[UW_REG_LR], f);
	/* The caller's stack pointer is the CFA. */
	if (f->where[UW_REG_SP] == UW_UNDEFINED ||
	    (f->where[UW_REG_SP] == UW_CFA_PLUS && !f->off[UW_REG_SP]))
		f->where[UW_REG_SP] = UW_SAME;
	if (f->where[UW_REG_PC] == UW_UNDEFINED || f->where[UW_REG_PC] == UW_SAME)
		f->flags |= UW_OUTERMOST;
	return true;
}
