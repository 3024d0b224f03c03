/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/stackwalk.h"

#include <stdlib.h>
#include <string.h>
#include "unwind/step.h"

#define MAX_STACK_SCAN	 (64ull << 20)
#define MAX_STEPS	 8192
#define MAX_SIGNAL_FRAME (64u << 10) /* with the largest vector state that exists */
/* A stack that is not the thread's own can be part of a large heap mapping.  The signal frame of a
 * handler that runs on it is not farther away than this. */
#define MAX_HANDLER_STACK (1ull << 20)
/* The return addresses into the agent are around the stack pointer at a hook's entry: above it that
 * of a hook without a frame of its own, below it that of the hook's body and its callees. */
#define FRAME_BELOW 512
#define FRAME_ABOVE 64

static bool in_spans(const struct span *spans, uint32_t n, uint64_t value)
{
	for (uint32_t i = 0; i < n; i++) {
		if (value >= spans[i].start && value < spans[i].end)
			return true;
	}
	return false;
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

/* Parameters of a stack scan. */
struct search {
	struct target *t;
	const struct span *spans;
	uint32_t n;
	bool signal_frames; /* count only words that are the interrupted pc of a signal frame ... */
	uint64_t sp;	    /* ... when this is the stack pointer */
};

static bool word_near(struct target *t, uint64_t at, int16_t offset, uint64_t *word)
{
	return read_target(t, at + (uint64_t)(int64_t)offset, word);
}

/*
 * Is the word at @at the interrupted pc in the frame of a signal whose handler can be running with
 * the stack pointer @sp?  The frame is either on the alternate stack, together with @sp, or right
 * below the interrupted stack pointer.
 */
static bool is_signal_frame(struct target *t, uint64_t at, uint64_t sp)
{
	const struct arch *a = t->arch;
	uint64_t flags, interrupted, start, size;

	if (!word_near(t, at, a->unwind.signal_frame.flags, &flags) ||
	    (flags & a->unwind.signal_frame.mask) != a->unwind.signal_frame.value ||
	    !word_near(t, at, a->unwind.signal_frame.sp, &interrupted) ||
	    !word_near(t, at, a->unwind.signal_frame.alt_start, &start) ||
	    !word_near(t, at, a->unwind.signal_frame.alt_size, &size))
		return false;
	return at - start < size ? sp - start < size
				 : interrupted > at && interrupted - at < MAX_SIGNAL_FRAME;
}

static bool is_hit(const struct search *q, uint64_t at, uint64_t value)
{
	return in_spans(q->spans, q->n, value & ~(uint64_t)q->t->arch->code_bits) &&
	       (!q->signal_frames || is_signal_frame(q->t, at, q->sp));
}

/* Searches the words of the stack from @sp to @end. */
static bool scan_stack(const struct search *q, uint64_t sp, uint64_t end)
{
	static const size_t chunk = 64 << 10;
	uint64_t word = q->t->arch->word_size;
	uint8_t *buf = malloc(chunk);
	bool found = false;

	if (!buf)
		return true;
	while (sp < end && !found) {
		size_t want = end - sp < chunk ? end - sp : chunk;
		ssize_t got = mem_read_some(&q->t->mem, sp, buf, want);

		if (got <= 0)
			break;
		for (uint64_t i = 0; i + word <= (uint64_t)got && !found; i += word)
			found = is_hit(q, sp + i, arch_word(q->t->arch, buf + i));
		sp += (uint64_t)got;
	}
	free(buf);
	return found;
}

/* The used part of the thread's stack, at most @limit bytes.  Return: false if the thread has no
 * stack. */
static bool stack_of(struct target *t, struct thread *th, const struct maps *maps, uint64_t limit,
		     uint64_t *low, uint64_t *high)
{
	uint64_t sp = t->arch->regs.get_sp(&th->regs);
	const struct map *m = maps_find(maps, sp);

	if (!m)
		return false;
	*low = (sp - t->arch->unwind.red_zone) & ~(uint64_t)(t->arch->word_size - 1);
	if (*low < m->start)
		*low = m->start;
	*high = m->end - *low > limit ? *low + limit : m->end;
	return true;
}

bool stack_interrupted(struct target *t, struct thread *th, const struct maps *maps,
		       const struct span *spans, uint32_t n)
{
	struct search q = {.t = t, .spans = spans, .n = n, .signal_frames = true};
	uint64_t low, high, limit = MAX_STACK_SCAN;

	if (thread_get_regs(t, th))
		return false;
	q.sp = t->arch->regs.get_sp(&th->regs);
	if (!thread_owns_stack(t, th, maps, q.sp))
		limit = MAX_HANDLER_STACK;
	return stack_of(t, th, maps, limit, &low, &high) && scan_stack(&q, low, high);
}

bool stack_frame_is_intact(struct target *t, uint64_t frame, const struct span *spans, uint32_t n)
{
	const struct search q = {.t = t, .spans = spans, .n = n};
	uint64_t at = frame & ~(uint64_t)(t->arch->word_size - 1);

	return scan_stack(&q, at - FRAME_BELOW, at + FRAME_ABOVE);
}

bool stack_mentions(struct target *t, struct thread *th, const struct maps *maps,
		    const struct span *spans, uint32_t n)
{
	const struct search q = {.t = t, .spans = spans, .n = n};
	uint64_t low, high, word = t->arch->word_size, clean = ~(uint64_t)t->arch->code_bits;

	if (thread_get_regs(t, th))
		return false;
	for (size_t at = 0; at + word <= th->regs.size; at += word) {
		if (in_spans(spans, n, arch_word(t->arch, th->regs.raw + at) & clean))
			return true;
	}
	return stack_of(t, th, maps, MAX_STACK_SCAN, &low, &high) && scan_stack(&q, low, high);
}

enum stack_walk stack_walk(struct target *t, struct thread *th, const struct ss_control *block,
			   uint64_t length, const struct span *spans, uint32_t n, uint64_t frame,
			   bool *covered)
{
	struct uw_state s = {.exact_pc = true}, next;
	bool ignored = false;

	covered = covered ? covered : &ignored;
	*covered = false;

	if (thread_get_regs(t, th))
		return WALK_LOST;
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if (t->arch->regs.get_column(&th->regs, i, &s.reg[i]))
			s.valid |= 1u << i;
	}
	for (int steps = 0; steps < MAX_STEPS; steps++) {
		uint64_t pc = s.reg[UW_REG_PC];
		struct uw_full rule;

		if (in_spans(spans, n, pc))
			return WALK_INSIDE;
		/* A rule that was derived from a prologue is not reliable enough for removing the
		 * agent. */
		if (block_rule(block, length, pc - !s.exact_pc, &rule) != LOOKUP_RULE ||
		    rule.flags & UW_AT_CALLS)
			return WALK_LOST;
		switch (uw_step_full(&rule, &s, &next, read_target, t)) {
		case UW_STEP_OK:
			*covered |= !(rule.flags & UW_SIGNAL) && frame >= s.reg[UW_REG_SP] &&
				    frame < next.reg[UW_REG_SP];
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
