/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Determines which stack memory can be read: each page is probed once, by a system call that copies
 * from it. */
#include "agent/stack.h"

#define EXTEND_MAX (64ull << 20) /* a frame farther away than this is not valid */
#define EFAULT	   14

bool ag_page_readable(const struct ss_control *c, uint64_t page)
{
	/* With an invalid "how" the kernel copies the set, then refuses: nothing changes. */
	return c->may_syscall && ag_raw_syscall(AG_NR_RT_SIGPROCMASK, -1, (long)page, 0,
						AG_SIGSET_BYTES, 0, 0) != -EFAULT;
}

bool ag_extend_up(const struct ss_control *c, struct ag_range *r, uint64_t end)
{
	if (end > r->limit || end - r->high > EXTEND_MAX)
		return false;
	while (r->high < end) {
		if (!ag_page_readable(c, r->high))
			return false;
		r->high += AG_PAGE;
	}
	return true;
}

/*
 * The C libraries put a thread's control block above its stack, into the same mapping.  Memory
 * mapped after it belongs to other code, which can unmap it while it is read.
 */
uint64_t ag_stack_limit(const struct ss_control *c, const struct ag_thread *t, uint64_t sp)
{
	uint64_t own = t->s.tp + (uint64_t)(int64_t)c->tid_offset;

	if (ag_on_main_stack(c, sp))
		return c->main_stack_high;
	return sp < own ? (own | (AG_PAGE - 1)) + 1 : UINT64_MAX;
}

struct ag_range ag_range_new(const struct ss_control *c, const struct ag_thread *t, uint64_t sp)
{
	uint64_t page = sp & ~(AG_PAGE - 1), limit = ag_stack_limit(c, t, sp);

	/* The caller knows that the page of @sp is mapped, or checks it. */
	return (struct ag_range){page, ag_on_main_stack(c, sp) ? limit : page + AG_PAGE, limit};
}

/* A running thread's own stack remains mapped: the main thread's, and the one below the thread
 * control block for others.  Any other stack (fibers) can have been unmapped since. */
static void forget_ranges(const struct ss_control *c, struct ag_thread *t)
{
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		struct ag_range *r = &t->range[i];

		if (r->high == c->main_stack_high || (t->s.tp >= r->low && t->s.tp < r->high))
			continue;
		*r = (struct ag_range){0};
	}
}

struct ag_range *ag_range_find(struct ss_control *c, struct ag_thread *t, uint64_t sp)
{
	struct ag_range *r;

	if (c->unmaps != t->unmaps_seen) {
		t->unmaps_seen = c->unmaps;
		forget_ranges(c, t);
	}
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		r = &t->range[i];
		if (sp >= r->low && sp < r->high)
			return r;
	}
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		r = &t->range[i];
		if (!r->high || sp >= r->low || r->low - sp > EXTEND_MAX / 64)
			continue;
		/* Deeper on a known stack: every page in between must be mapped.  The main thread's
		 * stack is a single mapping. */
		while (r->low > sp &&
		       ((r->high == c->main_stack_high && r->low > c->main_stack_low) ||
			ag_page_readable(c, r->low - AG_PAGE)))
			r->low -= AG_PAGE;
		if (r->low <= sp)
			return r;
	}
	r = &t->range[t->next_range++ % AG_RANGES];
	*r = ag_range_new(c, t, sp);
	return r;
}

struct ag_range *ag_range_other(struct ss_control *c, struct ag_thread *t, uint64_t addr)
{
	for (uint32_t i = 0; i < AG_RANGES && c->unmaps == t->unmaps_seen; i++) {
		if (addr >= t->range[i].low && addr < t->range[i].high)
			return &t->range[i];
	}
	return ag_page_readable(c, addr & ~(AG_PAGE - 1)) ? ag_range_find(c, t, addr) : NULL;
}
