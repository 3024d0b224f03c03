/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* New walks by simple rules, as far as no older one goes on the same way. */
#include "agent/stack.h"

/* Rule of a return address: row of the call before it.  One cached word is address and rule. */
static inline uint32_t rule_of_return(struct ss_control *c, uint64_t pc)
{
	uint64_t *slot = (uint64_t *)at_offset(c, c->rule_cache) +
			 ((pc * 0x9e3779b97f4a7c15ull) >> 40 & (c->rule_cache_size - 1));
	uint64_t word = __atomic_load_n(slot, __ATOMIC_RELAXED);
	uint32_t rule;

	if (likely(word >> 16 == (pc & MPR_ADDR_MASK)))
		return word & 0xffff;
	rule = rule_search(c, pc - 1);
	if (rule - 1 < 0xffff)
		__atomic_store_n(slot, pc << 16 | rule, __ATOMIC_RELAXED);
	return rule;
}

enum fast_result { FAST_DONE, FAST_TAKE_FULL };

/*
 * The frames of @w from 1 on by simple rules.  As soon as a frame of @last (the thread's latest
 * walk) is met in the same state and the rest of it still holds, the rest is copied.
 */
static enum fast_result walk_fast(const struct ag_call *call, struct ag_range *r, struct ag_walk *w,
				  const struct ag_walk *last, uint64_t sp)
{
	struct ss_control *c = call->c;
	const struct uw_rule *rules = at_offset(c, c->rules), *rule;
	/* @sp: behind the return address at @slot. */
	uint64_t slot = frame_ra_at(call->f), fp = w->fp0, fp_slot = 0, cfa, hash;
	uint32_t k = 1, j = 1, id, first_hash;
	bool spliced = false, needed;

	if (last->sp == 0 || last->generation != w->generation ||
	    last->ra[last->n - 1].at + sizeof(ag_word_t) > r->high)
		last = NULL;
	for (;; k++) {
		/* The first one is in our frame where the call pushed none. */
		if (k == AG_WALK_MAX || ((AG_RA_SIZE || k > 1) && !readable(c, r, slot)))
			return FAST_TAKE_FULL;
		w->ra[k].at = slot;
		w->ra[k].is = word_at(slot);
		if (AG_RA_SIZE)
			sp = slot + AG_RA_SIZE;
		else
			w->sp_of[k] = sp;
		w->fp[k] = fp;
		w->fp_slot[k] = fp_slot;
		w->fp_needed[k] = 0;
		if (last) {
			while (j < last->n && last->ra[j].at < slot)
				j++;
			if (j < last->n && last->ra[j].at == slot &&
			    last->ra[j].is == w->ra[k].is && (AG_RA_SIZE || last->sp_of[j] == sp) &&
			    (!last->fp_needed[j] || last->fp[j] == fp)) {
				if (tail_holds(last, j + 1)) {
					spliced = true;
					break;
				}
				last = NULL;
			}
		}
		id = rule_of_return(c, pc_of(w->ra[k].is));
		if (id - 1 >= 0xffff)
			return FAST_TAKE_FULL; /* no rule, no table, or ours */
		rule = &rules[id];
		if (rule->flags) {
			if (rule->flags != UW_OUTERMOST)
				return FAST_TAKE_FULL;
			break;
		}
		w->fp_needed[k] = rule->cfa_is_fp;
		cfa = (rule->cfa_is_fp ? fp : sp) + (int64_t)rule->cfa_off;
		fp_slot = 0;
		if (rule->fp_off != UW_FP_SAME) {
			fp_slot = cfa + (int64_t)rule->fp_off;
			if (fp_slot < sp || fp_slot >= cfa || !readable(c, r, fp_slot))
				return FAST_TAKE_FULL;
			fp = word_at(fp_slot);
		}
		slot = cfa + (int64_t)rule->ra_off;
		if (slot < sp || (!AG_RA_SIZE && slot >= cfa) || slot & (sizeof(ag_word_t) - 1))
			return FAST_TAKE_FULL;
		sp = cfa;
	}
	w->n = k + 1;
	w->flags = SS_STACK_COMPLETE;
	hash = 0;
	first_hash = k + 1;
	if (spliced) {
		uint32_t rest = last->n - j;

		if (k + rest > AG_WALK_MAX)
			return FAST_TAKE_FULL;
		w->fp_needed[k] = last->fp_needed[j];
		w->hash[k] = last->hash[j];
		for (uint32_t i = 1; i < rest; i++) {
			w->ra[k + i] = last->ra[j + i];
			w->fp[k + i] = last->fp[j + i];
			w->fp_slot[k + i] = last->fp_slot[j + i];
			if (!AG_RA_SIZE)
				w->sp_of[k + i] = last->sp_of[j + i];
			w->fp_needed[k + i] = last->fp_needed[j + i];
			w->hash[k + i] = last->hash[j + i];
		}
		w->n = k + rest;
		hash = w->hash[k];
		first_hash = k;
	}
	/* Which frame pointers matter: those a frame's CFA needs before they are loaded anew. */
	needed = false;
	w->nchecks = 0;
	if (spliced) {
		/* Of the frames that were copied it is known. */
		for (uint32_t i = 0; i < last->nchecks && last->check[i] > j; i++)
			w->check[w->nchecks++] = (uint16_t)(last->check[i] - j + k);
		needed = j + 1 < last->n && last->fp_needed[j + 1] && !last->fp_slot[j + 1];
	}
	for (uint32_t i = spliced ? k + 1 : w->n; i-- > 1;) {
		needed |= w->fp_needed[i];
		w->fp_needed[i] = needed;
		if (needed && w->fp_slot[i]) {
			w->check[w->nchecks++] = (uint16_t)i;
			needed = false;
		}
	}
	w->fp0_mask = needed ? UINT64_MAX : 0;
	w->end = w->ra[w->n - 1].at + sizeof(ag_word_t);
	w->ra[0].is = w->leaf | SS_PC_EXACT;
	for (uint32_t i = first_hash; i-- > 0;)
		w->hash[i] = hash = mix(hash, i ? pc_of(w->ra[i].is) : w->ra[i].is);
	return FAST_DONE;
}

uint32_t stack_walk(const struct ag_call *call, struct ag_range *r, uint64_t tag, bool *raw_wanted)
{
	struct ag_thread *t = call->t;
	uint32_t base = first_way(tag), victim = base + t->next_way++ % AG_WAYS;
	uint64_t sp = frame_sp(call->f);
	struct ag_walk *w;

	if (victim == t->last_walk)
		victim = base + t->next_way++ % AG_WAYS;
	w = &t->walk[victim];
	/* Not a walk while it changes, whoever leaves us here. */
	*(volatile uint64_t *)&w->sp = 0;
	w->fp0 = frame_fp(call->f);
	w->leaf = call->f->desc->function_addr;
	w->generation = __atomic_load_n(&call->c->generation, __ATOMIC_ACQUIRE);
	if (walk_fast(call, r, w, &t->walk[t->last_walk], sp) != FAST_DONE)
		return take_full(call, raw_wanted);
	w->stack = intern(call->c, w->hash[0], &w->ra[0].is, 2, w->n, w->flags);
	if (w->stack != MPR_STACK_NONE) {
		t->tag[victim] = tag;
		*(volatile uint64_t *)&w->sp = sp;
		t->last_walk = victim;
		stack_check(call, w->stack);
	}
	return w->stack;
}
