/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Translates one row of call frame information to a complete rule.  Used by interpret.c only. */
#ifndef UNWIND_TRANSLATE_H
#define UNWIND_TRANSLATE_H

#include "unwind/cfi.h"

enum cfi_kind {
	CFI_UNSPECIFIED = 0, /* by the calling convention */
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_OFFSET,	/* at CFA + number */
	CFI_VAL_OFFSET, /* is CFA + number */
	CFI_REGISTER,	/* in register number; for the CFA: that register + offset */
	CFI_EXPRESSION, /* at the address it computes; for the CFA: is its value */
	CFI_VAL_EXPRESSION,
};

struct cfi_value {
	enum cfi_kind kind;
	int64_t number, offset;
	struct bytes expression;
};

/* How to find the CFA and the caller's registers, by column. */
struct cfi_state {
	struct cfi_value cfa, column[UW_MAX_REGS];
};

/* @cie: the CIE of the row.  Return: false if struct uw_full cannot express it. */
bool cfi_translate(const struct arch *arch, const struct cfi_cie *cie, const struct cfi_state *s,
		   struct uw_full *f);

#endif
