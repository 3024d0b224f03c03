/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/dumped.h"

#include <string.h>
#include "inject/lookup.h"

static bool read_dumped(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct dumped *d = ctx;

	uint64_t sp = d->regs[UW_REG_SP], word = d->arch->word_size;

	if (addr < sp || d->stack_bytes < word || addr - sp > d->stack_bytes - word)
		return false;
	*value = arch_word(d->arch, d->stack + (addr - sp));
	return true;
}

/* To the caller of a function that has not begun: no rule is needed. */
static bool return_from(const struct dumped *d, struct uw_state *s)
{
	s->exact_pc = false;
	if (!d->arch->call_push) {
		s->reg[UW_REG_PC] = s->reg[UW_REG_LR] & UW_PC_BITS;
		s->valid &= ~(1u << UW_REG_LR);
	} else if (!read_dumped((void *)d, s->reg[UW_REG_SP], &s->reg[UW_REG_PC])) {
		return false;
	}
	s->reg[UW_REG_SP] += d->arch->call_push;
	return true;
}

uint32_t dumped_unwind(const struct ss_control *block, uint64_t length, const struct dumped *d,
		       uint64_t *pc, uint32_t max, uint32_t *flags, bool *unknown)
{
	struct uw_state s = {.valid = d->valid, .exact_pc = true}, next;
	struct uw_full rule;
	enum lookup found;
	uint32_t n = 0;

	memcpy(s.reg, d->regs, sizeof(s.reg));
	*unknown = false;
	*flags = SS_STACK_BAD_FRAME;
	if (!d->interrupted) {
		pc[n++] = s.reg[UW_REG_PC] | SS_PC_EXACT;
		if (!return_from(d, &s))
			return n;
	}
	for (;;) {
		if (n == max) {
			*flags = SS_STACK_TOO_DEEP;
			return n;
		}
		pc[n++] = s.reg[UW_REG_PC] | (s.exact_pc ? SS_PC_EXACT : 0);
		found = block_rule(block, length, s.reg[UW_REG_PC] - !s.exact_pc, &rule);
		if (found != LOOKUP_RULE) {
			*unknown = found == LOOKUP_NO_MODULE;
			*flags = SS_STACK_NO_TABLE;
			return n;
		}
		switch (uw_step_full(&rule, &s, &next, read_dumped, (void *)d)) {
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
