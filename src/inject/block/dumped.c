/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/block/dumped.h"

#include <string.h>
#include "inject/block/lookup.h"

struct walk {
	const struct dumped *d;
	const struct ss_control *block;
	uint64_t length;
};

static bool read_dumped(const struct dumped *d, uint64_t addr, uint64_t *value)
{
	uint64_t sp = d->regs[UW_REG_SP], word = d->arch->word_size;

	if (addr < sp || d->stack_bytes < word || addr - sp > d->stack_bytes - word)
		return false;
	*value = arch_word(d->arch, d->stack + (addr - sp));
	return true;
}

/* Steps to the caller of a function that has not executed its first instruction: needs no rule. */
static bool return_from(const struct dumped *d, struct uw_state *s)
{
	s->exact_pc = false;
	if (!d->arch->unwind.call_push) {
		s->reg[UW_REG_PC] = s->reg[UW_REG_LR] & UW_PC_BITS;
		s->valid &= ~(1u << UW_REG_LR);
	} else if (!read_dumped(d, s->reg[UW_REG_SP], &s->reg[UW_REG_PC])) {
		return false;
	}
	s->reg[UW_REG_SP] += d->arch->unwind.call_push;
	return true;
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	return read_dumped(((const struct walk *)ctx)->d, addr, value);
}

static bool is_code(void *ctx, uint64_t addr)
{
	const struct walk *w = ctx;

	return block_is_code(w->block, w->length, addr);
}

/* Steps one frame outwards; @found: set to the result of the lookup. */
static enum uw_result one(struct walk *w, const struct uw_state *s, struct uw_state *next,
			  enum lookup *found, uint32_t *flags)
{
	struct uw_full rule;

	*found = block_rule(w->block, w->length, s->reg[UW_REG_PC] - !s->exact_pc, &rule);
	if (*found == LOOKUP_RULE && !uw_rule_holds(rule.flags, s))
		*found = LOOKUP_NO_RULE;
	if (*found == LOOKUP_RULE) {
		if (rule.flags & UW_AT_CALLS)
			*flags |= SS_STACK_BY_FP;
		return uw_step_full(&rule, s, next, read_word, w);
	}
	if (*found == LOOKUP_NO_MODULE || w->d->arch->unwind.call_push != 8 ||
	    !uw_step_fp(s, next, read_word, is_code, w))
		return UW_STEP_LOST;
	*flags |= SS_STACK_BY_FP;
	return UW_STEP_OK;
}

static uint32_t end_of(enum uw_result step)
{
	switch (step) {
	case UW_STEP_OUTERMOST:
		return SS_STACK_COMPLETE;
	case UW_STEP_MEMORY:
		return SS_STACK_TRUNCATED;
	default:
		return SS_STACK_BAD_FRAME;
	}
}

uint32_t dumped_unwind(const struct ss_control *block, uint64_t length, const struct dumped *d,
		       uint64_t *pc, uint32_t max, uint32_t *flags, bool *unknown)
{
	struct uw_state s = {.valid = d->valid, .exact_pc = true}, next;
	struct walk w = {.d = d, .block = block, .length = length};
	enum uw_result step;
	enum lookup found;
	uint32_t n = 0;

	memcpy(s.reg, d->regs, sizeof(s.reg));
	*unknown = false;
	*flags = 0;
	if (!d->interrupted) {
		pc[n++] = s.reg[UW_REG_PC] | SS_PC_EXACT;
		if (!return_from(d, &s)) {
			*flags = SS_STACK_BAD_FRAME;
			return n;
		}
	}
	for (;;) {
		if (n == max) {
			*flags |= SS_STACK_TOO_DEEP;
			return n;
		}
		pc[n++] = s.reg[UW_REG_PC] | (s.exact_pc ? SS_PC_EXACT : 0);
		step = one(&w, &s, &next, &found, flags);
		if (step == UW_STEP_OK) {
			s = next;
			continue;
		}
		*unknown = found == LOOKUP_NO_MODULE;
		*flags |= found == LOOKUP_RULE ? end_of(step) : SS_STACK_NO_TABLE;
		return n;
	}
}
