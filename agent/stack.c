/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks: walk with the recorder's tables, keep verified walks, intern to ids.
 *
 * Nothing here faults: stack memory is read only inside ranges that were found readable (a page is
 * asked for once, by a system call that copies from it), tables are the recorder's.
 * Nothing here blocks: loops are bounded, tables are read without locks (the generation tells a
 * change), the cache is touched by the outermost hook of a thread only.
 */
#include "agent/agent.h"

#define PAGE	      4096ull
#define EXTEND_MAX    (64ull << 20) /* a frame farther away than this is no frame */
#define INTERN_PROBES 64
#define INTERN_SPINS  64
#define EFAULT	      14
#define RULE_NONE     0u	  /* known: there is no unwind information */
#define RULE_UNKNOWN  0xffffffffu /* no table for this address yet */
#define RULE_OURS     0x10000u	  /* flag: code of the agent or an island */

/* ---------------------------------------------------------------- what may be read -- */

static bool page_readable(const struct ss_control *c, uint64_t page)
{
	/* With an invalid "how" the kernel copies the set, then refuses: nothing changes. */
	return c->may_syscall &&
	       raw_syscall(AG_NR_RT_SIGPROCMASK, -1, (long)page, 0, 8, 0, 0) != -EFAULT;
}

static bool extend_up(const struct ss_control *c, struct ag_range *r, uint64_t end)
{
	if (end - r->high > EXTEND_MAX)
		return false;
	while (r->high < end) {
		if (!page_readable(c, r->high))
			return false;
		r->high += PAGE;
	}
	return true;
}

static inline bool readable(const struct ss_control *c, struct ag_range *r, uint64_t addr)
{
	if (likely(addr >= r->low && addr + 8 <= r->high))
		return true;
	return addr >= r->low && addr + 8 > addr && extend_up(c, r, addr + 8);
}

static struct ag_range range_new(const struct ss_control *c, uint64_t sp)
{
	/* The page we run on is there; so is all of the main thread's stack above it. */
	if (sp >= c->main_stack_low && sp < c->main_stack_high)
		return (struct ag_range){sp & ~(PAGE - 1), c->main_stack_high};
	return (struct ag_range){sp & ~(PAGE - 1), (sp & ~(PAGE - 1)) + PAGE};
}

/* A running thread's own stack stays: the kernel's for the main thread, the one below the thread
 * control block for others.  Any other (fibers) may have been unmapped since. */
static void forget_ranges(const struct ss_control *c, struct ag_thread *t)
{
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		struct ag_range *r = &t->range[i];

		if (r->high == c->main_stack_high || (t->s.tp >= r->low && t->s.tp < r->high))
			continue;
		r->low = r->high = 0;
	}
}

/* The range @sp is in; made when there is none. */
static struct ag_range *range_of(struct ss_control *c, struct ag_thread *t, uint64_t sp)
{
	struct ag_range *r;
	uint64_t unmaps = c->unmaps;

	if (unlikely(unmaps != t->unmaps_seen)) {
		t->unmaps_seen = unmaps;
		forget_ranges(c, t);
	}
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		r = &t->range[i];
		if (likely(sp >= r->low && sp < r->high))
			return r;
	}
	for (uint32_t i = 0; i < AG_RANGES; i++) {
		r = &t->range[i];
		if (!r->high || sp >= r->low || r->low - sp > EXTEND_MAX / 64)
			continue;
		/* Deeper on a known stack: every page in between has to be there. */
		while (r->low > sp && page_readable(c, r->low - PAGE))
			r->low -= PAGE;
		if (r->low <= sp)
			return r;
	}
	r = &t->range[t->next_range++ % AG_RANGES];
	*r = range_new(c, sp);
	return r;
}

/* ---------------------------------------------------------------- rules -- */

static const struct ss_module *module_find(const struct ss_module_list *list, uint64_t pc)
{
	uint32_t lo = 0, hi = list->n < SS_MAX_MODULES ? list->n : SS_MAX_MODULES;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (pc < list->at[mid].start)
			hi = mid;
		else if (pc >= list->at[mid].end)
			lo = mid + 1;
		else
			return &list->at[mid];
	}
	return NULL;
}

static uint32_t rule_search(struct ss_control *c, uint64_t pc)
{
	const struct ss_module_list *list =
	    at_offset(c, __atomic_load_n(&c->module_list, __ATOMIC_ACQUIRE));
	const struct ss_module *m = module_find(list, pc);
	const uint32_t *pcs;
	uint32_t lo = 0, hi, want;

	if (!m)
		return RULE_UNKNOWN;
	hi = m->n;
	want = (uint32_t)(pc - m->start);
	pcs = at_offset(c, m->pcs);
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (pcs[mid] <= want)
			lo = mid + 1;
		else
			hi = mid;
	}
	want = lo ? ((const uint16_t *)at_offset(c, m->rules))[lo - 1] : RULE_NONE;
	return want | (m->flags & SS_MODULE_AGENT ? RULE_OURS : 0);
}

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

/* ---------------------------------------------------------------- interning -- */

static inline uint64_t mix(uint64_t hash, uint64_t pc)
{
	hash = (hash ^ pc) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint32_t arena_put(struct ss_control *c, const uint64_t *pc, uint32_t n, uint32_t flags)
{
	uint64_t at = __atomic_fetch_add(&c->arena_used, n + 1, __ATOMIC_RELAXED);
	struct ss_stack *s;

	if (at + n + 1 > c->arena_words || at + n + 1 > MPR_STACK_RAW) {
		__atomic_fetch_add(&c->stacks_full, 1, __ATOMIC_RELAXED);
		return MPR_STACK_NONE;
	}
	s = (struct ss_stack *)((uint64_t *)at_offset(c, c->arena) + at);
	s->n = n;
	s->flags = flags;
	for (uint32_t i = 0; i < n; i++)
		s->pc[i] = pc[i];
	return (uint32_t)at;
}

/* Two threads, or a signal handler, may intern one stack twice: the recorder compares contents. */
static uint32_t intern(struct ss_control *c, uint64_t hash, const uint64_t *pc, uint32_t n,
		       uint32_t flags)
{
	struct ss_intern *table = at_offset(c, c->interns), *e = NULL;
	uint32_t mask = c->ninterns - 1, i, id;
	uint64_t key;

	hash = mix(hash, flags);
	hash += !hash;
	i = (uint32_t)(hash >> 32) & mask;
	for (uint32_t probe = 0; probe < INTERN_PROBES; probe++, i = (i + 1) & mask) {
		e = &table[i];
		key = __atomic_load_n(&e->key, __ATOMIC_ACQUIRE);
		if (!key && __atomic_compare_exchange_n(&e->key, &key, hash, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			id = arena_put(c, pc, n, flags);
			__atomic_store_n(&e->stack, id, __ATOMIC_RELEASE);
			return id;
		}
		if (key != hash)
			continue;
		for (uint32_t spin = 0; spin < INTERN_SPINS; spin++) {
			id = __atomic_load_n(&e->stack, __ATOMIC_ACQUIRE);
			if (id)
				return id;
			cpu_pause();
		}
		break;
	}
	return arena_put(c, pc, n, flags);
}

/* ---------------------------------------------------------------- the complete walk -- */

struct reader {
	const struct ss_control *c;
	struct ag_range *range;
	bool crossed; /* a signal frame was passed: the stack below is another one */
};

static bool read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	struct reader *r = ctx;

	if (unlikely(!readable(r->c, r->range, addr))) {
		if (!r->crossed)
			return false;
		*r->range = range_new(r->c, addr);
		if (!page_readable(r->c, r->range->low) || !readable(r->c, r->range, addr))
			return false;
	}
	*value = *(const uint64_t *)addr;
	return true;
}

struct walk_result {
	uint32_t n, flags;
	bool raw_wanted, signal_seen, ours_seen, ours_after_signal;
};

/* All registers, every kind of rule; addresses to @pc. */
static struct walk_result walk_full(const struct ag_call *call, uint64_t *pc, uint32_t max)
{
	struct ss_control *c = call->c;
	const struct uw_full *full = at_offset(c, c->full_rules);
	const struct uw_rule *rules = at_offset(c, c->rules);
	struct uw_state *s = &call->t->state[call->level][0], *next = s + 1, *swap;
	struct ag_range range = range_new(c, frame_sp(call->f));
	struct reader reader = {c, &range, false};
	struct walk_result r = {0};
	enum uw_result step;
	uint32_t rule;

	frame_state(call->f, call->f->desc->function_addr, s);
	pc[r.n++] = s->reg[AG_REG_PC] | SS_PC_EXACT;
	/* At a function's entry only the call was made. */
	if (!read_stack(&reader, s->reg[AG_REG_SP], &s->reg[AG_REG_PC])) {
		r.flags = SS_STACK_BAD_FRAME;
		return r;
	}
	s->reg[AG_REG_SP] += AG_RA_SIZE;
	s->exact_pc = false;
	for (uint32_t steps = 0;; steps++) {
		rule = s->exact_pc ? rule_search(c, s->reg[AG_REG_PC])
				   : rule_search(c, s->reg[AG_REG_PC] - 1);
		if (rule != RULE_UNKNOWN && rule & RULE_OURS) {
			r.ours_seen = true;
			r.ours_after_signal |= r.signal_seen;
		} else if (r.n < max) {
			pc[r.n++] = s->reg[AG_REG_PC] | (s->exact_pc ? SS_PC_EXACT : 0);
		}
		if (r.n == max || steps == 2 * SS_MAX_FRAMES) {
			r.flags = SS_STACK_TOO_DEEP;
			return r;
		}
		if (rule == RULE_UNKNOWN) {
			r.raw_wanted = true;
			r.flags = SS_STACK_NO_TABLE;
			return r;
		}
		rule &= 0xffff;
		if (rule == RULE_NONE) {
			r.flags = SS_STACK_NO_TABLE;
			return r;
		}
		if (rules[rule].flags & UW_SIGNAL)
			r.signal_seen = reader.crossed = true;
		step = uw_step_full(&full[rules[rule].full], s, next, read_stack, &reader);
		if (step != UW_STEP_OK) {
			r.flags =
			    step == UW_STEP_OUTERMOST ? SS_STACK_COMPLETE : SS_STACK_BAD_FRAME;
			return r;
		}
		swap = s;
		s = next;
		next = swap;
	}
}

static uint32_t take_full(const struct ag_call *call, bool *raw_wanted)
{
	uint64_t *pc = call->t->scratch[call->level], hash = 0;
	struct walk_result r = walk_full(call, pc, SS_MAX_FRAMES);

	call->t->s.frames += r.n;
	*raw_wanted = r.raw_wanted;
	if (r.raw_wanted)
		return MPR_STACK_NONE;
	for (uint32_t i = r.n; i-- > 0;)
		hash = mix(hash, pc[i]);
	return intern(call->c, hash, pc, r.n, r.flags);
}

enum ag_nesting stack_nesting(const struct ag_call *call)
{
	struct walk_result r = walk_full(call, call->t->scratch[call->level], SS_MAX_FRAMES);

	if (r.ours_after_signal)
		return AG_FROM_SIGNAL;
	if (r.ours_seen)
		return AG_INNER;
	/* None of our frames below: the hook was left.  Where that cannot be seen to the end, a
	 * stack pointer above the hook's own says the same. */
	if (r.flags & SS_STACK_COMPLETE || frame_sp(call->f) > call->t->outer_sp)
		return AG_FRESH;
	return AG_INNER;
}

uint64_t stack_room(const struct ag_call *call, uint64_t sp, uint64_t max)
{
	struct ag_range range = range_new(call->c, sp);

	extend_up(call->c, &range, sp + max);
	return range.high > sp + max ? max : range.high - sp;
}

/* ---------------------------------------------------------------- the verified cache -- */

static inline bool tail_holds(const struct ag_walk *w, uint32_t from)
{
	for (uint32_t i = from; i < w->n; i++) {
		if (*(const uint64_t *)w->ra[i] != w->pc[i])
			return false;
	}
	/* check[] descends. */
	for (uint32_t i = 0; i < w->nchecks && w->check[i] >= from; i++) {
		if (*(const uint64_t *)w->fp_slot[w->check[i]] != w->fp[w->check[i]])
			return false;
	}
	return true;
}

static inline bool walk_holds(const struct ag_walk *w, const struct ag_range *r, uint64_t sp,
			      uint64_t fp, uint64_t leaf, uint32_t generation)
{
	return w->sp == sp && w->leaf == leaf && w->generation == generation &&
	       (!w->fp0_needed || w->fp0 == fp) && w->ra[w->n - 1] + 8 <= r->high &&
	       tail_holds(w, 1);
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
	uint64_t slot = sp, fp = w->fp0, fp_slot = 0, cfa, hash;
	uint32_t k = 1, j = 1, id, first_hash;
	bool spliced = false, needed;

	if (last->sp == 0 || last->generation != w->generation ||
	    last->ra[last->n - 1] + 8 > r->high || last->ra[1] < r->low)
		last = NULL;
	for (;; k++) {
		if (k == AG_WALK_MAX || !readable(c, r, slot))
			return FAST_TAKE_FULL;
		w->ra[k] = slot;
		w->pc[k] = *(const uint64_t *)slot;
		w->fp[k] = fp;
		w->fp_slot[k] = fp_slot;
		w->fp_needed[k] = 0;
		if (last) {
			while (j < last->n && last->ra[j] < slot)
				j++;
			if (j < last->n && last->ra[j] == slot && last->pc[j] == w->pc[k] &&
			    (!last->fp_needed[j] || last->fp[j] == fp)) {
				if (tail_holds(last, j + 1)) {
					spliced = true;
					break;
				}
				last = NULL;
			}
		}
		id = rule_of_return(c, w->pc[k]);
		if (id - 1 >= 0xffff)
			return FAST_TAKE_FULL; /* no rule, no table, or ours */
		call->t->s.frames++;
		rule = &rules[id];
		if (rule->flags) {
			if (rule->flags != UW_OUTERMOST)
				return FAST_TAKE_FULL;
			break;
		}
		w->fp_needed[k] = rule->cfa_is_fp;
		cfa = (rule->cfa_is_fp ? fp : slot + AG_RA_SIZE) + (int64_t)rule->cfa_off;
		fp_slot = 0;
		if (rule->fp_off != UW_FP_SAME) {
			fp_slot = cfa + (int64_t)rule->fp_off;
			if (fp_slot <= slot || fp_slot >= cfa || !readable(c, r, fp_slot))
				return FAST_TAKE_FULL;
			fp = *(const uint64_t *)fp_slot;
		}
		cfa += (int64_t)rule->ra_off;
		if (cfa <= slot || cfa & 7)
			return FAST_TAKE_FULL;
		slot = cfa;
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
			w->pc[k + i] = last->pc[j + i];
			w->fp[k + i] = last->fp[j + i];
			w->fp_slot[k + i] = last->fp_slot[j + i];
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
	for (uint32_t i = w->n; i-- > 1;) {
		needed |= w->fp_needed[i];
		w->fp_needed[i] = needed;
		if (needed && w->fp_slot[i]) {
			w->check[w->nchecks++] = (uint16_t)i;
			needed = false;
		}
	}
	w->fp0_needed = needed;
	w->pc[0] = w->leaf | SS_PC_EXACT;
	for (uint32_t i = first_hash; i-- > 0;)
		w->hash[i] = hash = mix(hash, w->pc[i]);
	return FAST_DONE;
}

uint32_t stack_take(const struct ag_call *call, bool *raw_wanted)
{
	struct ss_control *c = call->c;
	struct ag_thread *t = call->t;
	uint64_t sp = frame_sp(call->f), fp = frame_fp(call->f), h;
	uint64_t leaf = call->f->desc->function_addr;
	uint32_t generation, base, victim;
	struct ag_range *r;
	struct ag_walk *w;

	t->s.stacks++;
	*raw_wanted = false;
	if (unlikely(call->level)) /* the interrupted hook may be changing the cache */
		return take_full(call, raw_wanted);
	generation = __atomic_load_n(&c->generation, __ATOMIC_ACQUIRE);
	r = range_of(c, t, sp);
	h = (sp ^ call->f->return_address * 31) * 0x9e3779b97f4a7c15ull;
	base = (uint32_t)(h >> 40) % (AG_WALKS / AG_WAYS) * AG_WAYS;
	for (uint32_t i = base; i < base + AG_WAYS; i++) {
		w = &t->walk[i];
		if (walk_holds(w, r, sp, fp, leaf, generation)) {
			t->last_walk = i;
			t->s.stacks_cached++;
			return w->stack;
		}
	}
	victim = base + t->next_way++ % AG_WAYS;
	if (victim == t->last_walk)
		victim = base + t->next_way++ % AG_WAYS;
	w = &t->walk[victim];
	*(volatile uint64_t *)&w->sp = 0; /* not a walk while it changes, whoever leaves us here */
	w->fp0 = fp;
	w->leaf = leaf;
	w->generation = generation;
	if (walk_fast(call, r, w, &t->walk[t->last_walk], sp) != FAST_DONE)
		return take_full(call, raw_wanted);
	w->stack = intern(c, w->hash[0], w->pc, w->n, w->flags);
	if (w->stack != MPR_STACK_NONE) {
		*(volatile uint64_t *)&w->sp = sp;
		t->last_walk = victim;
	}
	return w->stack;
}
