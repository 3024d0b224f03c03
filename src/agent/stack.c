/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The complete walk: all registers, every kind of rule. */
#include "agent/stack.h"

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

static const struct ss_module_list *module_list(const struct ss_control *c)
{
	return (const void *)((const char *)c + __atomic_load_n(&c->module_list, __ATOMIC_ACQUIRE));
}

uint32_t ag_rule_search(struct ss_control *c, uint64_t pc)
{
	const struct ss_module *m = module_find(module_list(c), pc);
	const uint32_t *pcs;
	uint32_t lo = 0, hi, want;

	if (!m)
		return AG_RULE_UNKNOWN;
	hi = m->n;
	want = (uint32_t)(pc - m->start);
	pcs = ag_at_offset(c, m->pcs);
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (pcs[mid] <= want)
			lo = mid + 1;
		else
			hi = mid;
	}
	want = lo ? ((const uint16_t *)ag_at_offset(c, m->rules))[lo - 1] : AG_RULE_NONE;
	return want | (m->flags & SS_MODULE_AGENT ? AG_RULE_OURS : 0);
}

struct ag_reader {
	const struct ag_call *call;
	struct ag_range *range, own;
	bool crossed; /* frames from here on can be on another stack */
};

/* The thread's ranges are only for its outermost hook, because an interrupted hook can be changing
 * them. */
static void reader_begin(struct ag_reader *r, const struct ag_call *call)
{
	uint64_t sp = ag_frame_sp(call->f);

	r->call = call;
	r->crossed = false;
	if (call->level) {
		r->own = ag_range_new(call->c, call->t, sp);
		r->range = &r->own;
	} else {
		r->range = ag_range_of(call->c, call->t, sp);
	}
}

/* Switches to the memory at @addr, which can be unmapped.  Return: whether it is readable. */
static bool reader_moves(struct ag_reader *r, uint64_t addr)
{
	const struct ag_call *call = r->call;

	if (!call->level) {
		r->range = ag_range_other(call->c, call->t, addr);
		return r->range;
	}
	r->own = ag_range_new(call->c, call->t, addr);
	return ag_page_readable(call->c, r->own.low);
}

static bool read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	struct ag_reader *r = ctx;

	if (unlikely(!ag_readable(r->call->c, r->range, addr)) &&
	    !(r->crossed && reader_moves(r, addr) && ag_readable(r->call->c, r->range, addr)))
		return false;
	*value = ag_word_at(addr);
	return true;
}

static bool ag_is_code(void *ctx, uint64_t addr)
{
	const struct ag_reader *r = ctx;

	return module_find(module_list(r->call->c), addr);
}

/* Only where a call pushes the return address: elsewhere a frame pointer does not give the caller's
 * stack pointer. */
static bool step_by_fp(const struct uw_state *s, struct uw_state *next, struct ag_reader *r)
{
	return AG_RA_SIZE && uw_step_fp(s, next, read_stack, ag_is_code, r);
}

struct ag_walk_result {
	uint32_t n, flags;
	uint64_t top; /* stack pointer of the last frame that was reached */
	bool raw_wanted, signal_seen, ours_seen;
};

/* Walks with all registers and every kind of rule; writes addresses to @pc.  @to_hook: the walk ends at
 * the first frame of the agent, and uses neither frame pointers nor rules that rely on them. */
static struct ag_walk_result walk_full(const struct ag_call *call, uint64_t *pc, uint32_t max,
				       bool to_hook)
{
	struct ss_control *c = call->c;
	const struct uw_full *full = ag_at_offset(c, c->full_rules), *f;
	const struct uw_rule *rules = ag_at_offset(c, c->rules);
	struct uw_state *s = &call->t->state[call->level][0], *next = s + 1, *swap;
	struct ag_reader reader;
	struct ag_walk_result r = {0};
	enum uw_result step;
	uint32_t rule;

	reader_begin(&reader, call);
	ag_frame_state(call->f, call->f->desc->function_addr, s);
	pc[r.n++] = s->reg[UW_REG_PC] | SS_PC_EXACT;
	/* At a function's entry nothing but the call has been executed. */
	s->reg[UW_REG_PC] = ag_pc_of(call->f->return_address);
	s->reg[UW_REG_SP] += AG_RA_SIZE;
	s->exact_pc = false;
	if (!AG_RA_SIZE)
		s->valid &= ~(1u << UW_REG_LR);
	for (uint32_t steps = 0;; steps++) {
		rule = s->exact_pc ? ag_rule_search(c, s->reg[UW_REG_PC])
				   : ag_rule_search(c, s->reg[UW_REG_PC] - 1);
		if (rule != AG_RULE_UNKNOWN && rule & AG_RULE_OURS) {
			r.ours_seen = true;
			if (to_hook)
				return r;
		} else if (r.n < max) {
			pc[r.n++] = s->reg[UW_REG_PC] | (s->exact_pc ? SS_PC_EXACT : 0);
		}
		if (r.n == max || steps == 2 * SS_MAX_FRAMES) {
			r.flags |= SS_STACK_TOO_DEEP;
			return r;
		}
		if (rule == AG_RULE_UNKNOWN) {
			r.raw_wanted = true;
			r.flags |= SS_STACK_NO_TABLE;
			return r;
		}
		f = &full[rules[rule & 0xffff].full];
		reader.crossed |= (f->flags & (UW_SIGNAL | UW_SWITCH)) != 0;
		r.signal_seen |= (f->flags & UW_SIGNAL) != 0;
		r.top = s->reg[UW_REG_SP];
		if (uw_rule_holds(f->flags, s) && (!to_hook || !(f->flags & UW_AT_CALLS))) {
			step = uw_step_full(f, s, next, read_stack, &reader);
		} else if (!to_hook && step_by_fp(s, next, &reader)) {
			step = UW_STEP_OK;
			r.flags |= SS_STACK_BY_FP;
		} else {
			r.flags |= SS_STACK_NO_TABLE;
			return r;
		}
		if (step != UW_STEP_OK) {
			r.flags |=
			    step == UW_STEP_OUTERMOST ? SS_STACK_COMPLETE : SS_STACK_BAD_FRAME;
			return r;
		}
		swap = s;
		s = next;
		next = swap;
	}
}

uint32_t ag_take_full(const struct ag_call *call)
{
	uint64_t *pc = call->t->scratch[call->level], hash = 0;
	struct ag_walk_result r = walk_full(call, pc, SS_MAX_FRAMES, false);

	if (r.raw_wanted)
		return AG_STACK_RAW_WANTED;
	for (uint32_t i = r.n; i-- > 0;)
		hash = ag_mix(hash, pc[i]);
	return ag_intern(call->c, hash, pc, 1, r.n, r.flags);
}

/*
 * Is the frame of a hook that was entered with stack pointer @left dead?  It is if its memory
 * belongs to frames of the present walk, or is below the stack pointer on the thread's own stack,
 * which ends at the thread control block.  A coroutine's stack can be used again.
 */
static bool frame_is_dead(const struct ag_call *call, const struct ag_walk_result *r, uint64_t left)
{
	const struct ss_control *c = call->c;
	uint64_t sp = ag_frame_sp(call->f);
	struct ag_range range = ag_range_new(c, call->t, left);

	if (left >= sp)
		return r->flags & SS_STACK_COMPLETE && !r->signal_seen && left < r->top;
	if (left >= c->main_stack_low && sp < c->main_stack_high)
		return true;
	return sp < range.limit && ag_extend_up(c, &range, range.limit);
}

/* Removes the hook from the thread's account: lists its frame as left unless that is dead. */
static void note_left(const struct ag_call *call, const struct ag_walk_result *r)
{
	struct ss_account *a = call->account;

	if (frame_is_dead(call, r, a->outer_sp))
		return;
	for (uint32_t i = 0; i < SS_LEFT_FRAMES; i++) {
		if (a->left[i] && a->left[i] != a->outer_sp && !frame_is_dead(call, r, a->left[i]))
			continue;
		a->left[i] = a->outer_sp;
		a->nleft += a->nleft <= i;
		return;
	}
	a->nleft = SS_LEFT_FRAMES + 1;
}

void ag_stack_frame_returned(const struct ag_call *call)
{
	struct ss_account *a = call->account;

	for (uint32_t i = 0; i < SS_LEFT_FRAMES; i++) {
		if (a->left[i] == ag_frame_sp(call->f))
			a->left[i] = 0;
	}
}

enum ag_nesting ag_stack_nesting(const struct ag_call *call)
{
	/* Uncertain frames must not decide that a hook was left. */
	struct ag_walk_result r =
	    walk_full(call, call->t->scratch[call->level], SS_MAX_FRAMES, true);

	if (r.ours_seen)
		return r.signal_seen ? AG_FROM_SIGNAL : AG_INNER;
	/* There is no frame of the agent below: the hook was left.  If the walk is incomplete, a
	 * stack pointer above the hook's own proves the same. */
	if (!(r.flags & SS_STACK_COMPLETE) && ag_frame_sp(call->f) <= call->account->outer_sp)
		return AG_INNER;
	note_left(call, &r);
	return AG_FRESH;
}

#ifdef AGENT_CHECK_STACKS
static bool stacks_equal(struct ss_control *c, uint32_t a, uint32_t b)
{
	const struct ss_stack *x = ag_at_offset(c, c->arena + 8ull * a);
	const struct ss_stack *y = ag_at_offset(c, c->arena + 8ull * b);

	if (x->n != y->n || x->flags != y->flags)
		return false;
	for (uint32_t i = 0; i < x->n; i++) {
		if (x->pc[i] != y->pc[i])
			return false;
	}
	return true;
}

void ag_stack_check(const struct ag_call *call, uint32_t id)
{
	uint32_t full;

	if (id == MPR_STACK_NONE)
		return;
	full = ag_take_full(call);
	/* No room for it, or a table was added or removed in between. */
	if (full == MPR_STACK_NONE || full == AG_STACK_RAW_WANTED)
		return;
	__atomic_fetch_add(&call->c->stacks_checked, 1, __ATOMIC_RELAXED);
	if (full != id && !stacks_equal(call->c, full, id))
		__atomic_fetch_add(&call->c->stacks_differ, 1, __ATOMIC_RELAXED);
}
#endif
