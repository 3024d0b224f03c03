/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One row of call frame information as a complete rule; interpret.c's own. */
#ifndef UNWIND_TRANSLATE_H
#define UNWIND_TRANSLATE_H

#include "unwind/cfi.h"

enum cfi_kind {
	CFI_UNSPECIFIED = 0, /* as the calling convention says */
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_OFFSET,	/* at CFA + number */
	CFI_VAL_OFFSET, /* is CFA + number */
	CFI_REGISTER,	/* in register number; of the CFA: + offset */
	CFI_EXPRESSION, /* at what it computes; of the CFA: is that */
	CFI_VAL_EXPRESSION,
};

struct cfi_value {
	enum cfi_kind kind;
	int64_t number, offset;
	struct bytes expression;
};

/* What is known of the caller's registers, by column. */
struct cfi_state {
	struct cfi_value cfa, column[UW_MAX_REGS];
};

/* @cie: the one of the row.  Return: false if struct uw_full cannot say it. */
bool cfi_translate(const struct arch *arch, const struct cfi_cie *cie, const struct cfi_state *s,
		   struct uw_full *f);

#endif
