/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/hooks/inside.h"

#include <errno.h>
#include <stdlib.h>
#include "inject/hooks/stackwalk.h"
#include "inject/internal.h"

#define MAX_ACCOUNTS 16384u

static int add_own_spans(struct inside *in, const struct ss_journal *j)
{
	struct span span = {j->agent_addr, j->gate_addr};
	int ret = vec_push(&in->own, span);

	for (uint32_t i = 0; i < j->nislands && !ret; i++) {
		span = (struct span){j->island[i].addr, j->island[i].addr + j->island[i].length};
		ret = vec_push(&in->own, span);
	}
	return ret;
}

int inside_open(struct inside *in, struct session *s, bool child)
{
	const struct ss_journal *j = s->journal;
	uint64_t text = j->gate_addr - j->agent_addr, rest = j->agent_length - text;

	*in = (struct inside){.s = s, .child = child};
	/* In a session that was never complete no thread has entered the agent. */
	if (text < j->agent_length && rest > SS_GATE_BYTES)
		in->n = (uint32_t)((rest - SS_GATE_BYTES) / sizeof(struct ss_account));
	if (in->n > MAX_ACCOUNTS || in->n & (in->n - 1))
		in->n = 0;
	in->accounts = calloc(in->n + 1, sizeof(*in->accounts));
	if (in->accounts && !add_own_spans(in, j))
		return 0;
	inside_free(in);
	return -ENOMEM;
}

void inside_read(struct inside *in)
{
	const struct ss_journal *j = in->s->journal;
	const struct mem *mem = &in->s->t->mem;
	struct ss_gate gate;

	/* The memory can be missing if a recorder was killed before it had mapped it, or after it
	 * had unmapped it: in both cases no thread is inside. */
	in->present =
	    !mem_read(mem, j->gate_addr, &gate, sizeof(gate)) &&
	    !mem_read(mem, ss_accounts_addr(j), in->accounts, in->n * sizeof(*in->accounts));
	in->unaccounted = in->present && gate.unaccounted;
}

void inside_free(struct inside *in)
{
	vec_free(&in->own);
	vec_free(&in->suspects);
	free(in->accounts);
	in->accounts = NULL;
}

static const struct ss_account *account_of(const struct inside *in, uint64_t tp)
{
	uint32_t n = in->present ? in->n : 0, mask = n - 1, i = ss_first_slot(tp, mask);

	for (uint32_t k = 0; tp && n && k < SS_PROBES; k++, i = (i + 1) & mask) {
		if (in->accounts[i].tp == tp)
			return &in->accounts[i];
	}
	return NULL;
}

static bool in_own(const struct inside *in, uint64_t pc)
{
	vec_for_each (&in->own, span) {
		if (pc >= span->start && pc < span->end)
			return true;
	}
	return false;
}

/* Are there frames of the agent where a hook was entered with stack pointer @frame, and can the
 * thread return to them? */
static bool frame_in_use(const struct inside *in, struct thread *th, const struct maps *maps,
			 uint64_t frame)
{
	struct target *t = in->s->t;
	uint64_t sp = t->arch->regs.get_sp(&th->regs);
	bool covered;

	if (!stack_frame_is_intact(t, frame, in->own.at, (uint32_t)in->own.n))
		return false;
	if (frame < sp && thread_owns_stack(t, th, maps, sp) &&
	    thread_owns_stack(t, th, maps, frame))
		return false;
	return stack_walk(t, th, in->s->block, in->s->length, in->own.at, (uint32_t)in->own.n,
			  frame, &covered) != WALK_CLEAR ||
	       !covered;
}

static bool walk_is_clear(const struct inside *in, struct thread *th)
{
	return stack_walk(in->s->t, th, in->s->block, in->s->length, in->own.at,
			  (uint32_t)in->own.n, 0, NULL) == WALK_CLEAR;
}

static bool is_suspect(const struct inside *in, pid_t tid)
{
	vec_for_each (&in->suspects, it) {
		if (*it == tid)
			return true;
	}
	return !in->noted;
}

void inside_note(struct inside *in)
{
	in->suspects.n = 0;
	in->noted = true;
	vec_for_each (&in->s->t->threads, it) {
		if ((*it)->keep && vec_push(&in->suspects, (*it)->tid))
			in->noted = false;
	}
}

bool inside_thread(const struct inside *in, struct thread *th, const struct maps *maps)
{
	struct target *t = in->s->t;
	const struct ss_account *a;
	uint64_t tp;

	if (th->state == THREAD_IN_VFORK)
		return is_suspect(in, th->tid);
	if (thread_get_regs(t, th))
		return false; /* it is being killed */
	if (in_own(in, t->arch->regs.get_pc(&th->regs)))
		return true;
	tp = thread_get_tp(t, th);
	a = in->child && th->tid != t->pid ? NULL : account_of(in, tp);
	if (!a && in->unaccounted)
		return stack_mentions(t, th, maps, in->own.at, (uint32_t)in->own.n) &&
		       !walk_is_clear(in, th);
	if (a && a->depth && frame_in_use(in, th, maps, a->outer_sp))
		return true;
	return stack_interrupted(t, th, maps, in->own.at, (uint32_t)in->own.n) &&
	       !walk_is_clear(in, th);
}

bool inside_hook(const void *inside, const struct thread *th)
{
	const struct inside *in = inside;
	uint64_t tp = thread_get_tp(in->s->t, th);
	const struct ss_account *a = account_of(in, tp);
	struct ss_account now;

	if (!a)
		return !tp; /* the thread pointer cannot be read while the thread runs */
	return !mem_read(&in->s->t->mem,
			 ss_accounts_addr(in->s->journal) +
			     (uint64_t)(a - in->accounts) * sizeof(*a),
			 &now, sizeof(now)) &&
	       now.depth;
}

/* Is there an intact frame of the agent at @frame, on a stack that no thread uses? */
static bool frame_is_parked(const struct inside *in, const struct maps *maps, uint64_t frame)
{
	struct target *t = in->s->t;
	const struct map *m = maps_find(maps, frame);
	bool covered = false;

	if (!m || !stack_frame_is_intact(t, frame, in->own.at, (uint32_t)in->own.n))
		return false;
	vec_for_each (&t->threads, it) {
		struct thread *th = *it;
		uint64_t sp;

		if (thread_get_regs(t, th))
			continue;
		sp = t->arch->regs.get_sp(&th->regs);
		if (frame < sp && thread_owns_stack(t, th, maps, sp) &&
		    thread_owns_stack(t, th, maps, frame))
			return false;
		if (stack_walk(t, th, in->s->block, in->s->length, in->own.at, (uint32_t)in->own.n,
			       frame, &covered) == WALK_CLEAR &&
		    covered)
			return false;
	}
	return true;
}

static bool is_alive(const struct inside *in, uint64_t tp)
{
	vec_for_each (&in->s->t->threads, it) {
		if (!thread_get_regs(in->s->t, *it) && thread_get_tp(in->s->t, *it) == tp)
			return true;
	}
	return false;
}

bool inside_coroutine(const struct inside *in, const struct maps *maps)
{
	for (uint32_t i = 0; in->present && i < in->n; i++) {
		const struct ss_account *a = &in->accounts[i];
		bool parked = false;

		if (!a->nleft || !is_alive(in, a->tp))
			continue;
		for (uint32_t k = 0; k < SS_LEFT_FRAMES && !parked; k++)
			parked = a->left[k] && frame_is_parked(in, maps, a->left[k]);
		if (parked || a->nleft > SS_LEFT_FRAMES)
			return true;
	}
	return false;
}

static bool thread_mentions(const struct inside *in, struct thread *th, const struct span *slot,
			    const struct maps *maps)
{
	struct target *t = in->s->t;
	const struct ss_account *a;

	if (th->state == THREAD_IN_VFORK)
		return true;
	if (thread_get_regs(t, th))
		return false;
	a = account_of(in, thread_get_tp(t, th));
	return stack_mentions(t, th, maps, slot, 1) ||
	       /* A handler on an alternate stack has interrupted the hook. */
	       (a && a->depth && stack_frame_is_intact(t, a->outer_sp, slot, 1));
}

bool inside_slot(const struct inside *in, const struct span *slot, const struct maps *maps)
{
	vec_for_each (&in->s->t->threads, it) {
		if (thread_mentions(in, *it, slot, maps))
			return true;
	}
	for (uint32_t i = 0; in->present && i < in->n; i++) {
		const struct ss_account *a = &in->accounts[i];

		if (a->nleft > SS_LEFT_FRAMES)
			return true;
		for (uint32_t k = 0; k < SS_LEFT_FRAMES; k++) {
			if (a->left[k] && stack_frame_is_intact(in->s->t, a->left[k], slot, 1))
				return true;
		}
	}
	return false;
}
