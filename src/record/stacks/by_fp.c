/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/stacks/by_fp.h"

#include "inject/block/lookup.h"
#include "record/recorder.h"

/* Return: whether a call instruction precedes the return address @pc. */
static bool follows_call(const struct recorder_config *c, uint64_t pc)
{
	return !c->follows_call || c->follows_call(c->ctx, pc);
}

uint32_t stack_by_fp(const struct recorder_config *c, const uint64_t *pc, uint32_t n,
		     uint32_t *flags)
{
	/* The first frame is the hooked function, whose caller is found without a rule. */
	for (uint32_t i = 1; i + 1 < n; i++) {
		bool exact = pc[i] & SS_PC_EXACT;
		struct uw_full rule;
		enum lookup found =
		    block_rule(c->block, c->block_length, (pc[i] & ~SS_PC_EXACT) - !exact, &rule);

		if (found == LOOKUP_RULE && !(rule.flags & UW_AT_CALLS))
			continue;
		*flags |= SS_STACK_BY_FP;
		if ((found == LOOKUP_RULE && !exact) || follows_call(c, pc[i + 1]))
			continue;
		*flags &= ~(uint32_t)SS_STACK_COMPLETE;
		*flags |= SS_STACK_NO_TABLE;
		return i + 1;
	}
	return n;
}
