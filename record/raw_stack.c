/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks that the agent could not walk: code was on the way that had no table yet. */
#include <string.h>
#include "record/internal.h"
#include "unwind/step.h"

struct dumped {
	uint64_t sp;
	const uint8_t *bytes;
	uint32_t n;
};

static bool read_dumped(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct dumped *d = ctx;

	if (addr < d->sp || addr - d->sp + 8 > d->n)
		return false;
	memcpy(value, d->bytes + (addr - d->sp), sizeof(*value));
	return true;
}

enum { RULE_UNKNOWN = 0x10000 };

/* Everything in the block is checked: the target can write to it. */
static uint32_t rule_at(const struct ss_control *c, uint64_t length, uint64_t pc)
{
	uint64_t at = c->module_list;
	const struct ss_module_list *list = (const void *)((const char *)c + at);

	if (at > length - sizeof(*list) - SS_MAX_MODULES * sizeof(list->at[0]))
		return RULE_UNKNOWN;
	for (uint32_t i = 0; i < list->n && i < SS_MAX_MODULES; i++) {
		struct ss_module m = list->at[i];
		const uint32_t *pcs = (const void *)((const char *)c + m.pcs);
		uint32_t lo = 0, hi = m.n;

		if (pc < m.start || pc >= m.end)
			continue;
		if (m.pcs > length || m.rules > length || 4ull * m.n > length - m.pcs ||
		    2ull * m.n > length - m.rules)
			return 0;
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (pcs[mid] <= pc - m.start)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo ? ((const uint16_t *)((const char *)c + m.rules))[lo - 1] : 0;
	}
	return RULE_UNKNOWN;
}

uint32_t raw_stack_unwind(const struct ss_control *block, uint64_t length,
			  const struct mpr_raw_stack *raw, uint64_t *pc, uint32_t max,
			  uint32_t *flags, bool *unknown)
{
	struct uw_state s = {.valid = (uint32_t)raw->reg_valid, .exact_pc = true}, next;
	struct dumped d = {raw->regs[UW_REG_SP], (const uint8_t *)(raw + 1), raw->bytes};
	uint32_t n = 0, rule;

	memcpy(s.reg, raw->regs, sizeof(s.reg));
	*unknown = false;
	*flags = SS_STACK_BAD_FRAME;
	pc[n++] = s.reg[UW_REG_PC] | SS_PC_EXACT;
	if (!read_dumped(&d, s.reg[UW_REG_SP], &s.reg[UW_REG_PC]))
		return n;
	s.reg[UW_REG_SP] += 8;
	s.exact_pc = false;
	for (;;) {
		if (n == max) {
			*flags = SS_STACK_TOO_DEEP;
			return n;
		}
		pc[n++] = s.reg[UW_REG_PC] | (s.exact_pc ? SS_PC_EXACT : 0);
		rule = rule_at(block, length, s.reg[UW_REG_PC] - !s.exact_pc);
		if (rule == RULE_UNKNOWN || rule == 0) {
			*unknown = rule == RULE_UNKNOWN;
			*flags = SS_STACK_NO_TABLE;
			return n;
		}
		switch (uw_step_full(
		    (const struct uw_full *)((const char *)block + block->full_rules) + rule, &s,
		    &next, read_dumped, &d)) {
		case UW_STEP_OK:
			s = next;
			break;
		case UW_STEP_OUTERMOST:
			*flags = SS_STACK_COMPLETE;
			return n;
		case UW_STEP_MEMORY:
			*flags = SS_STACK_TRUNCATED;
			return n;
		default:
			return n;
		}
	}
}
