/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * New walks by simple rules.  If the latest walk has the same outer frames, they are kept and the
 * inner ones are overwritten.  Only a thread's outermost hook gets here, so no signal handler sees
 * a walk change.  A walk that is interrupted for good (longjmp, the thread is killed) has sp 0 and
 * is neither used nor continued.
 */
#include "agent/stack.h"

/* Return: the rule of a return address, from the row of the call before it.  One cached word holds
 * address and rule. */
static inline uint32_t rule_of_return(struct ss_control *c, uint64_t pc)
{
	uint64_t *slot = (uint64_t *)ag_at_offset(c, c->rule_cache) +
			 ((pc * 0x9e3779b97f4a7c15ull) >> 40 & (c->rule_cache_size - 1));
	uint64_t word = __atomic_load_n(slot, __ATOMIC_RELAXED);
	uint32_t rule;

	if (likely(word >> 16 == (pc & MPR_ADDR_MASK)))
		return word & 0xffff;
	rule = ag_rule_search(c, pc - 1);
	if (rule - 1 < 0xffff)
		__atomic_store_n(slot, pc << 16 | rule, __ATOMIC_RELAXED);
	return rule;
}

/* The result of a fresh walk: @nfresh new inner frames, and @keep outer frames that are taken from
 * the latest walk, its frames 0 to @keep - 1 (0: none). */
struct ag_way {
	uint32_t nfresh, keep;
};

/* Return: how many frames of @w, outermost first, are unchanged on the stack, at most @upto. */
static uint32_t frames_held(const struct ag_thread *t, const struct ag_walk *w, uint32_t upto)
{
	uint32_t i = 0, k = 0, n;

	while (i + 4 <= upto && ag_words_hold(w->ra + i, w->ra + i + 4))
		i += 4;
	while (i < upto && ag_word_at(w->ra[i].at) == w->ra[i].is)
		i++;
	n = i ? t->step[i - 1].nchecks : 0;
	while (k < n && ag_word_at(w->check[k].at) == w->check[k].is)
		k++;
	/* If a frame pointer changed, the frame that depends on it must be walked again. */
	if (k < n)
		while (i && t->step[i - 1].nchecks > k)
			i--;
	return i;
}

/* Is @f the same frame, in the same state, as frame @i of @last, and are all outer frames
 * unchanged?  @held: set to the number of unchanged frames once that is known. */
static bool goes_on_at(const struct ag_thread *t, const struct ag_walk *last, uint32_t i,
		       const struct ag_fresh *f, uint32_t *held)
{
	if (last->ra[i].is != f->ra.is || (!AG_RA_SIZE && t->step_sp[i] != f->sp) ||
	    (t->step[i].needs_fp && t->step[i].fp != f->fp))
		return false;
	if (*held == UINT32_MAX)
		*held = frames_held(t, last, i);
	return i <= *held;
}

/* Return: @value, without a data dependency on the frame before, so that the processor need not
 * wait for that one. */
static inline uint64_t same_but_known(uint64_t value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

/*
 * Walks by simple rules from the caller outwards, until a frame of @last (the latest walk) is
 * reached in the same state and all outer frames are unchanged.  Return: false if that is not
 * possible.
 */
static bool walk_fresh(const struct ag_call *call, struct ag_range *r, const struct ag_walk *last,
		       struct ag_way *way)
{
	struct ss_control *c = call->c;
	struct ag_thread *t = call->t;
	const struct uw_rule *rules = ag_at_offset(c, c->rules), *rule;
	uint64_t slot = ag_frame_ra_at(call->f), sp = ag_frame_sp(call->f),
		 fp = ag_frame_fp(call->f);
	uint64_t fp_slot = 0, cfa;
	uint32_t j = last ? last->n : 0, held = UINT32_MAX, id;
	struct ag_fresh *f = t->fresh;
	bool met;

	for (;; f++) {
		/* If the call pushed no return address, the first one is in the agent's frame. */
		if (f == t->fresh + AG_WALK_MAX ||
		    ((AG_RA_SIZE || f > t->fresh) && !ag_readable(c, r, slot)))
			return false;
		while (j && last->ra[j - 1].at < slot)
			j--;
		met = j && last->ra[j - 1].at == slot;
		if (met)
			slot = same_but_known(last->ra[j - 1].at);
		if (AG_RA_SIZE)
			sp = slot + AG_RA_SIZE;
		*f = (struct ag_fresh){{slot, ag_word_at(slot)}, sp, fp, fp_slot, false};
		if (met && j - 1 <= held && goes_on_at(t, last, j - 1, f, &held)) {
			f->needs_fp = t->step[j - 1].needs_fp;
			way->keep = j - 1;
			break;
		}
		id = rule_of_return(c, ag_pc_of(f->ra.is));
		if (id - 1 >= 0xffff)
			return false; /* no rule, no table, or the agent's code */
		rule = &rules[id];
		if (rule->flags) {
			if (rule->flags != UW_OUTERMOST)
				return false;
			way->keep = 0;
			break;
		}
		f->needs_fp = rule->cfa_is_fp;
		cfa = (rule->cfa_is_fp ? fp : sp) + (int64_t)rule->cfa_off;
		fp_slot = 0;
		if (rule->fp_off != UW_FP_SAME) {
			fp_slot = cfa + (int64_t)rule->fp_off;
			if (fp_slot < sp || fp_slot >= cfa || !ag_readable(c, r, fp_slot))
				return false;
			fp = ag_word_at(fp_slot);
		}
		slot = cfa + (int64_t)rule->ra_off;
		if (slot < sp || (!AG_RA_SIZE && slot >= cfa) || slot & (sizeof(ag_word_t) - 1))
			return false;
		sp = cfa;
	}
	way->nfresh = (uint32_t)(f - t->fresh) + 1;
	return way->keep + way->nfresh <= AG_WALK_MAX;
}

/* Updates the latest walk with the fresh frames.  Return: the hash of its frames. */
static uint64_t walk_go_on(struct ag_thread *t, struct ag_walk *w, const struct ag_way *way)
{
	struct ag_step s = {0};
	uint32_t i = way->keep;

	if (i)
		s = t->step[i - 1];
	for (const struct ag_fresh *f = t->fresh + way->nfresh; f-- > t->fresh; i++) {
		w->ra[i] = f->ra;
		s.hash = ag_mix(s.hash, ag_pc_of(f->ra.is));
		s.fp = f->fp;
		s.needs_fp = s.passes_fp = f->needs_fp || s.passes_fp;
		if (s.needs_fp && f->fp_slot) {
			w->check[s.nchecks++] = (struct ag_word){f->fp_slot, f->fp};
			s.passes_fp = false;
		}
		t->step[i] = s;
		if (!AG_RA_SIZE)
			t->step_sp[i] = f->sp;
	}
	w->n = i;
	w->nchecks = s.nchecks;
	w->fp0_mask = s.passes_fp ? UINT64_MAX : 0;
	w->end = w->ra[0].at + sizeof(ag_word_t);
	w->ra[i].is = w->leaf | SS_PC_EXACT;
	return ag_mix(s.hash, w->ra[i].is);
}

static uint64_t walk_tag(const struct ag_frame *f)
{
	uint64_t where = ag_frame_sp(f) ^ f->return_address * 31;

	return (where + f->desc->function_addr) * 0x9e3779b97f4a7c15ull | 1;
}

static uint32_t first_way(uint64_t tag)
{
	return (uint32_t)(tag >> 40) % (AG_WALKS / AG_WAYS) * AG_WAYS;
}

/* Gives a walk that was made twice with the same result a place in the cache. */
static void walk_keep(struct ag_thread *t, const struct ag_walk *w, uint64_t tag)
{
	uint32_t i = (uint32_t)(tag >> 32) % AG_SEEN, way = first_way(tag);
	uint64_t seen = tag ^ w->stack;
	struct ag_walk *to;

	if (t->seen[i] != seen) {
		t->seen[i] = seen;
		return;
	}
	way += t->next_way++ % AG_WAYS;
	to = &t->walk[way];
	*(volatile uint64_t *)&to->sp = 0;
	to->fp0 = w->fp0;
	to->leaf = w->leaf;
	to->fp0_mask = w->fp0_mask;
	to->end = w->end;
	to->n = w->n;
	to->nchecks = w->nchecks;
	to->generation = w->generation;
	to->stack = w->stack;
	for (uint32_t k = 0; k < w->n; k++)
		to->ra[k] = w->ra[k];
	for (uint32_t k = 0; k < w->nchecks; k++)
		to->check[k] = w->check[k];
	t->tag[way] = tag;
	*(volatile uint64_t *)&to->sp = w->sp;
}

static uint32_t ag_stack_walk(const struct ag_call *call, struct ag_range *r, uint64_t tag)
{
	struct ag_thread *t = call->t;
	struct ag_walk *w = &t->walk[AG_LATEST];
	uint32_t generation = __atomic_load_n(&call->c->generation, __ATOMIC_ACQUIRE);
	bool goes_on = w->sp && w->generation == generation && w->end <= r->high;
	struct ag_way way;
	uint64_t hash;

	if (!walk_fresh(call, r, goes_on ? w : NULL, &way))
		return ag_take_full(call);
	/* Invalid while it changes, in case the hook is left in between. */
	*(volatile uint64_t *)&w->sp = 0;
	w->fp0 = ag_frame_fp(call->f);
	w->leaf = call->f->desc->function_addr;
	w->generation = generation;
	hash = walk_go_on(t, w, &way);
	w->stack = ag_intern(call->c, hash, &w->ra[w->n].is, -2, w->n + 1, SS_STACK_COMPLETE);
	if (w->stack != MPR_STACK_NONE) {
		*(volatile uint64_t *)&w->sp = ag_frame_sp(call->f);
		walk_keep(t, w, tag);
		ag_stack_check(call, w->stack);
	}
	return w->stack;
}

uint32_t ag_stack_other(const struct ag_call *call, struct ag_range *r)
{
	uint64_t tag = walk_tag(call->f);
	uint32_t way = first_way(tag), last = way + AG_WAYS - 1;
	struct ag_thread *t = call->t;

	while (t->tag[way] != tag && way < last)
		way++;
	if (ag_walk_holds(call, r, &t->walk[way]))
		return ag_stack_hit(call, &t->walk[way]);
	return ag_stack_walk(call, r, tag);
}
