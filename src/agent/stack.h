/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks: walks them with the recorder's tables, caches verified walks, interns them as stack ids.
 *
 * Nothing here faults: stack memory is read only inside ranges that were found readable, and tables
 * are in the session block.  Nothing here blocks: loops are bounded, tables are read without locks
 * (a change increments the generation), and only the outermost hook of a thread uses the cache.
 */
#ifndef AGENT_STACK_H
#define AGENT_STACK_H

#include "agent/agent.h"

#define AG_RULE_NONE	0u	    /* it is known that there is no unwind information */
#define AG_RULE_UNKNOWN 0xffffffffu /* no table for this address yet */
#define AG_RULE_OURS	0x10000u    /* flag: code of the agent or an island */

/* ---------------------------------------------------------------- readable.c -- */

bool ag_page_readable(const struct ss_control *c, uint64_t page);
/* Extends @r up to @end if that is within its limit and all pages in between can be read. */
bool ag_extend_up(const struct ss_control *c, struct ag_range *r, uint64_t end);
/* Return: the readable range around @sp as far as it is known without a system call. */
struct ag_range ag_range_new(const struct ss_control *c, const struct ag_thread *t, uint64_t sp);
/* Return: the thread's range that contains @sp; a new one if there is none. */
struct ag_range *ag_range_find(struct ss_control *c, struct ag_thread *t, uint64_t sp);

/* ag_range_find() for an address that can be unmapped or unreadable: NULL in that case. */
struct ag_range *ag_range_other(struct ss_control *c, struct ag_thread *t, uint64_t addr);

static inline struct ag_range *ag_range_of(struct ss_control *c, struct ag_thread *t, uint64_t sp)
{
	struct ag_range *r = &t->range[0];

	if (likely(c->unmaps == t->unmaps_seen && sp >= r->low && sp < r->high))
		return r;
	return ag_range_find(c, t, sp);
}

static inline bool ag_readable(const struct ss_control *c, struct ag_range *r, uint64_t addr)
{
	if (likely(addr >= r->low && addr + sizeof(ag_word_t) <= r->high))
		return true;
	return addr >= r->low && addr + sizeof(ag_word_t) > addr &&
	       ag_extend_up(c, r, addr + sizeof(ag_word_t));
}

/* ---------------------------------------------------------------- stack.c -- */

/* Return: the rule at an instruction, from the modules' tables. */
uint32_t ag_rule_search(struct ss_control *c, uint64_t pc);

/* Returned if a frame is in code that has no table yet: the registers and the stack must be sent.
 * Not the id of any stack. */
#define AG_STACK_RAW_WANTED MPR_STACK_RAW

/* The complete walk; returns the same as ag_stack_take(). */
uint32_t ag_take_full(const struct ag_call *call);

/* Return: the code address in a return address as it is on the stack. */
static inline uint64_t ag_pc_of(uint64_t word)
{
	return AG_RA_SIZE ? word : word & UW_PC_BITS;
}

/* ---------------------------------------------------------------- intern.c -- */

static inline uint64_t ag_mix(uint64_t hash, uint64_t pc)
{
	hash = (hash ^ pc) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Return: the id of the stack of @n addresses, one every @stride words.  A walk's return addresses,
 * with @stride -2, are unprocessed stack words except for the first.  Two threads, or a signal
 * handler, can intern the same stack twice: the recorder compares contents. */
uint32_t ag_intern(struct ss_control *c, uint64_t hash, const uint64_t *pc, int32_t stride,
		   uint32_t n, uint32_t flags);

/* ---------------------------------------------------------------- walk.c -- */

/* ag_stack_take() if the latest walk does not match. */
uint32_t ag_stack_other(const struct ag_call *call, struct ag_range *r);

#ifdef AGENT_CHECK_STACKS
/* The checking build compares the result of a cached or quick walk with a complete one. */
void ag_stack_check(const struct ag_call *call, uint32_t id);
#else
static inline void ag_stack_check(const struct ag_call *call, uint32_t id)
{
	(void)call;
	(void)id;
}
#endif

/* Compares from the last word, the innermost: most changes are there. */
static inline bool ag_words_hold(const struct ag_word *begin, const struct ag_word *w)
{
	for (; w - begin >= 4; w -= 4) {
		if (((ag_word_at(w[-1].at) ^ w[-1].is) | (ag_word_at(w[-2].at) ^ w[-2].is) |
		     (ag_word_at(w[-3].at) ^ w[-3].is) | (ag_word_at(w[-4].at) ^ w[-4].is)) != 0)
			return false;
	}
	while (w > begin) {
		w--;
		if (ag_word_at(w->at) != w->is)
			return false;
	}
	return true;
}

/* Is @w still the caller's stack? */
static inline bool ag_walk_holds(const struct ag_call *call, const struct ag_range *r,
				 const struct ag_walk *w)
{
	const struct ag_frame *f = call->f;

	return w->sp == ag_frame_sp(f) && w->leaf == f->desc->function_addr &&
	       w->generation == call->c->generation && !((w->fp0 ^ ag_frame_fp(f)) & w->fp0_mask) &&
	       w->end <= r->high && ag_words_hold(w->ra, w->ra + w->n) &&
	       ag_words_hold(w->check, w->check + w->nchecks);
}

static inline uint32_t ag_stack_hit(const struct ag_call *call, const struct ag_walk *w)
{
	call->t->s.stacks_cached++;
	ag_stack_check(call, w->stack);
	return w->stack;
}

/* Return: the id of the caller's stack (MPR_STACK_*), or AG_STACK_RAW_WANTED. */
static inline __attribute__((always_inline)) uint32_t ag_stack_take(const struct ag_call *call)
{
	struct ag_thread *t = call->t;
	struct ag_range *r;

	if (unlikely(call->level)) /* the interrupted hook can be changing the cache */
		return ag_take_full(call);
	r = ag_range_of(call->c, t, ag_frame_sp(call->f));
	if (likely(ag_walk_holds(call, r, &t->walk[AG_LATEST])))
		return ag_stack_hit(call, &t->walk[AG_LATEST]);
	return ag_stack_other(call, r);
}

#endif
