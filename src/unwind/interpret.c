/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes call frame instructions (DWARF 5, 6.4.2) and emits rows. */
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include "unwind/translate.h"

#define MAX_REMEMBERED 16

struct run {
	const struct cfi *cfi;
	const struct cfi_cie *cie;
	struct cfi_state state, initial, remembered[MAX_REMEMBERED];
	unsigned depth;
	uint64_t pc, end;
	cfi_row_fn *row;
	void *ctx;
};

/* Emits the row that ends at @to. */
static int advance(struct run *r, uint64_t to)
{
	struct uw_full f;
	bool said;
	int ret;

	if (to <= r->pc)
		return to == r->pc ? 0 : -EINVAL;
	said = cfi_translate(r->cfi->arch, r->cie, &r->state, &f);
	ret = r->row(r->ctx, r->pc, said ? &f : NULL);
	r->pc = to;
	return ret;
}

static int advance_by(struct run *r, uint64_t delta)
{
	uint64_t by = delta * r->cie->code_factor;

	return advance(r, by > r->end - r->pc ? r->end : r->pc + by);
}

static struct cfi_value *value_of(struct run *r, uint64_t reg)
{
	int column = cfi_column(r->cfi->arch, reg);

	return column < 0 ? NULL : &r->state.column[column];
}

static void set_rule(struct run *r, uint64_t reg, enum cfi_kind kind, int64_t number)
{
	struct cfi_value *v = value_of(r, reg);

	if (v)
		*v = (struct cfi_value){.kind = kind, .number = number};
}

static void set_expression(struct run *r, uint64_t reg, enum cfi_kind kind, struct bytes expression)
{
	struct cfi_value *v = value_of(r, reg);

	if (v)
		*v = (struct cfi_value){.kind = kind, .expression = expression};
}

static void restore(struct run *r, uint64_t reg)
{
	int column = cfi_column(r->cfi->arch, reg);

	if (column >= 0)
		r->state.column[column] = r->initial.column[column];
}

static void define_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->state.cfa =
	    (struct cfi_value){.kind = CFI_REGISTER, .number = (int64_t)reg, .offset = offset};
}

static int remember(struct run *r)
{
	if (r->depth == MAX_REMEMBERED)
		return -EINVAL;
	r->remembered[r->depth++] = r->state;
	return 0;
}

static int recall(struct run *r)
{
	if (!r->depth)
		return -EINVAL;
	r->state = r->remembered[--r->depth];
	return 0;
}

static int set_location(struct run *r, struct bytes *b)
{
	uint64_t to = bytes_take(b, r->cfi->arch->word_size);

	/* Compilers do not write relative addresses here. */
	return r->cie->encoding != DW_EH_PE_absptr ? -EINVAL
						   : advance(r, to < r->end ? to : r->end);
}

/* Unsigned, since malicious factors can overflow. */
static int64_t scaled(const struct run *r, uint64_t value)
{
	return (int64_t)(value * (uint64_t)r->cie->data_factor);
}

static int do_cfa(struct run *r, uint8_t op, struct bytes *b)
{
	struct cfi_value *cfa = &r->state.cfa;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = bytes_uleb(b);
		define_cfa(r, reg, (int64_t)bytes_uleb(b));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = bytes_uleb(b);
		define_cfa(r, reg, scaled(r, (uint64_t)bytes_sleb(b)));
		return 0;
	case DW_CFA_def_cfa_register:
		define_cfa(r, bytes_uleb(b), cfa->offset);
		return 0;
	case DW_CFA_def_cfa_offset:
		cfa->offset = (int64_t)bytes_uleb(b);
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		cfa->offset = scaled(r, (uint64_t)bytes_sleb(b));
		return 0;
	default: /* DW_CFA_def_cfa_expression */
		*cfa = (struct cfi_value){.kind = CFI_EXPRESSION,
					  .expression = bytes_part(b, bytes_uleb(b))};
		return 0;
	}
}

static int do_register(struct run *r, uint8_t op, struct bytes *b)
{
	uint64_t reg = bytes_uleb(b);

	switch (op) {
	case DW_CFA_offset_extended:
		set_rule(r, reg, CFI_OFFSET, scaled(r, bytes_uleb(b)));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_rule(r, reg, CFI_OFFSET, scaled(r, (uint64_t)bytes_sleb(b)));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_rule(r, reg, CFI_OFFSET, scaled(r, -bytes_uleb(b)));
		return 0;
	case DW_CFA_val_offset:
		set_rule(r, reg, CFI_VAL_OFFSET, scaled(r, bytes_uleb(b)));
		return 0;
	case DW_CFA_val_offset_sf:
		set_rule(r, reg, CFI_VAL_OFFSET, scaled(r, (uint64_t)bytes_sleb(b)));
		return 0;
	case DW_CFA_restore_extended:
		restore(r, reg);
		return 0;
	case DW_CFA_undefined:
		set_rule(r, reg, CFI_UNDEFINED, 0);
		return 0;
	case DW_CFA_same_value:
		set_rule(r, reg, CFI_SAME, 0);
		return 0;
	case DW_CFA_register:
		set_rule(r, reg, CFI_REGISTER, (int64_t)bytes_uleb(b));
		return 0;
	case DW_CFA_expression:
		set_expression(r, reg, CFI_EXPRESSION, bytes_part(b, bytes_uleb(b)));
		return 0;
	default: /* DW_CFA_val_expression */
		set_expression(r, reg, CFI_VAL_EXPRESSION, bytes_part(b, bytes_uleb(b)));
		return 0;
	}
}

/* Executes an instruction whose operands are not in its first byte. */
static int do_extended(struct run *r, uint8_t op, struct bytes *b)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_location(r, b);
	case DW_CFA_advance_loc1:
		return advance_by(r, bytes_take(b, 1));
	case DW_CFA_advance_loc2:
		return advance_by(r, bytes_take(b, 2));
	case DW_CFA_advance_loc4:
		return advance_by(r, bytes_take(b, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance_by(r, bytes_take(b, 8));
	case DW_CFA_remember_state:
		return remember(r);
	case DW_CFA_restore_state:
		return recall(r);
	case DW_CFA_GNU_args_size:
		bytes_uleb(b);
		return 0;
	case DW_CFA_AARCH64_negate_ra_state:
		/* UW_PC_TAGGED is set for all return addresses. */
		return r->cfi->arch->elf_machine == EM_AARCH64 ? 0 : -EINVAL;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return do_cfa(r, op, b);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return do_register(r, op, b);
	}
	return -EINVAL;
}

static int run_insns(struct run *r, struct bytes b)
{
	int ret = 0;

	while (b.p < b.end && !ret && r->pc < r->end) {
		uint8_t op = (uint8_t)bytes_take(&b, 1), low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			ret = advance_by(r, low);
			break;
		case DW_CFA_offset:
			set_rule(r, low, CFI_OFFSET, scaled(r, bytes_uleb(&b)));
			break;
		case DW_CFA_restore:
			restore(r, low);
			break;
		default:
			ret = do_extended(r, op, &b);
		}
		if (!ret && b.lacking)
			ret = -EINVAL;
	}
	return ret;
}

/* Return: whether the CIE's return address register is the usual one of the architecture. */
static bool link_known(const struct arch *arch, const struct cfi_cie *cie)
{
	return cfi_column(arch, cie->ra_register) ==
	       (arch->unwind.call_push ? UW_REG_PC : UW_REG_LR);
}

int cfi_rows(const struct cfi *cfi, const struct cfi_fde *fde, cfi_row_fn *row, void *ctx)
{
	struct cfi_cie cie;
	struct bytes insns;
	struct run r;
	int ret;

	/* Not zeroed as a whole, since r.remembered is large and written before it is read. */
	r.cfi = cfi;
	r.cie = &cie;
	r.pc = fde->start;
	r.end = fde->end;
	r.row = row;
	r.ctx = ctx;
	r.depth = 0;
	memset(&r.state, 0, sizeof(r.state));
	if (!cfi_read_cie(cfi, fde->cie, &cie) || !link_known(cfi->arch, &cie))
		return row(ctx, fde->start, NULL);
	ret = run_insns(&r, cie.insns);
	r.initial = r.state;
	insns = cie.insns;
	insns.p = cfi->data + fde->insns;
	insns.end = cfi->data + fde->insns_end;
	if (!ret)
		ret = run_insns(&r, insns);
	/* From an unsupported instruction on there is no rule. */
	if (ret == -EINVAL)
		return row(ctx, r.pc, NULL);
	return ret ? ret : advance(&r, fde->end);
}
