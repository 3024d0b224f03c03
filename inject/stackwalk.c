/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/stackwalk.h"

#include <stdlib.h>
#include <string.h>
#include "unwind/step.h"

#define MAX_STACK_SCAN (64ull << 20)
#define MAX_STEPS      8192

static bool in_spans(const struct span *spans, uint32_t n, uint64_t value, bool strict)
{
	for (uint32_t i = 0; i < n; i++) {
		if (value >= spans[i].start + strict && value < spans[i].end)
			return true;
	}
	return false;
}

bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n, bool strict)
{
	static const size_t chunk = 64 << 10;
	const struct map *m;
	uint64_t sp, end, word = t->arch->word_size, clean = ~(uint64_t)t->arch->code_bits;
	bool found = false;
	uint8_t *buf;

	if (thread_get_regs(t, th))
		return false;
	for (size_t at = 0; !strict && at + word <= th->regs.size; at += word) {
		if (in_spans(spans, n, arch_word(t->arch, th->regs.raw + at) & clean, strict))
			return true;
	}
	sp = (t->arch->get_sp(&th->regs) - t->arch->red_zone) & ~(word - 1);
	m = maps_find(maps, t->arch->get_sp(&th->regs));
	if (!m)
		return false;
	if (sp < m->start)
		sp = m->start;
	end = m->end - sp > MAX_STACK_SCAN ? sp + MAX_STACK_SCAN : m->end;
	buf = malloc(chunk);
	if (!buf)
		return true;
	while (sp < end && !found) {
		size_t want = end - sp < chunk ? end - sp : chunk;
		ssize_t got = mem_read_some(&t->mem, sp, buf, want);

		if (got <= 0)
			break;
		for (uint64_t i = 0; i + word <= (uint64_t)got && !found; i += word)
			found = in_spans(spans, n, arch_word(t->arch, buf + i) & clean, strict);
		sp += (uint64_t)got;
	}
	free(buf);
	return found;
}

static bool read_target(void *ctx, uint64_t addr, uint64_t *value)
{
	struct target *t = ctx;
	uint8_t word[8];

	if (mem_read(&t->mem, addr, word, t->arch->word_size))
		return false;
	*value = arch_word(t->arch, word);
	return true;
}

enum stack_walk stack_walk(struct target *t, struct thread *th, const struct ss_control *block,
			   uint64_t length, const struct span *spans, uint32_t n)
{
	struct uw_state s = {.exact_pc = true}, next;

	if (thread_get_regs(t, th))
		return WALK_LOST;
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if (t->arch->get_column(&th->regs, i, &s.reg[i]))
			s.valid |= 1u << i;
	}
	for (int steps = 0; steps < MAX_STEPS; steps++) {
		uint64_t pc = s.reg[UW_REG_PC];
		struct uw_full rule;

		if (in_spans(spans, n, pc, false))
			return WALK_INSIDE;
		if (block_rule(block, length, pc - !s.exact_pc, &rule) != LOOKUP_RULE)
			return WALK_LOST;
		switch (uw_step_full(&rule, &s, &next, read_target, t)) {
		case UW_STEP_OK:
			s = next;
			break;
		case UW_STEP_OUTERMOST:
			return WALK_CLEAR;
		default:
			return WALK_LOST;
		}
	}
	return WALK_LOST;
}
