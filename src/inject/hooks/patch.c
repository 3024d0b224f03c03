/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Installs hooks.  Everything is computed before the stop; during the stop it is only checked and
 * copied.
 *
 * A planned hook is entered in the journal when it is installed, so that after a failed batch the
 * journal has exactly the hooks that are in the target.  It gets a new entry.  If there is none
 * left, it gets the entry of a function whose module was unloaded, provided that no thread can
 * return to its slot and no forked child still has it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inject/hooks/batch.h"
#include "inject/hooks/inside.h"
#include "inject/hooks/move.h"
#include "inject/hooks/stackwalk.h"
#include "lib/fault.h"
#include "lib/human.h"
#include "lib/priority.h"
#include "attach/steps.h"

#define TRIES 50 /* stops, while a thread is in the middle of a window */

static int move_thread(struct target *t, struct thread *th, const struct ss_journal_hook *h)
{
	struct arch_regs regs;

	if (thread_get_regs(t, th))
		return 0; /* waits in vfork, which is not an allocator function */
	regs = th->regs;
	return move_into_copy(t->arch, h, &regs) ? thread_put_regs(t, th, &regs) : 0;
}

static bool pc_in_group(const struct hook_batch *b, struct thread *th)
{
	const struct arch *arch = b->s->t->arch;
	bool badly = false;

	if (thread_get_regs(b->s->t, th))
		return false;
	for (uint32_t i = 0; i < b->n && !badly; i++)
		badly = move_cannot(arch, &b->work[i].hook, arch->regs.get_pc(&th->regs));
	return badly;
}

/* Can a signal handler return into the middle of a window, or is a thread inside a group of
 * instructions that cannot be split?  Other threads can be moved. */
static bool windows_busy(const struct hook_batch *b, const struct maps *maps)
{
	struct span *spans = calloc(b->n + 1, sizeof(*spans));
	bool busy = false;

	if (!spans)
		return true;
	for (uint32_t i = 0; i < b->n; i++)
		spans[i] = (struct span){b->work[i].hook.addr + 1,
					 b->work[i].hook.addr + b->work[i].hook.length};
	vec_for_each (&b->s->t->threads, th) {
		busy = stack_interrupted(b->s->t, *th, maps, spans, b->n) || pc_in_group(b, *th);
		if (busy)
			break;
	}
	free(spans);
	return busy;
}

static int write_text(struct hook_batch *b, struct mp_err *err)
{
	struct session *s = b->s;

	/* Crash-safe from here on: any prefix of the journal can be undone. */
	journal_set_state(s, SS_PATCHING);
	for (b->put = 0; b->put < b->n;) {
		struct work *w = &b->work[b->put];
		const struct ss_journal_hook *h = &w->hook;
		int ret = 0;

		w->hook.patched = 1;
		journal_publish_hook(s, w->index, h);
		b->put++;
		fault_point("patch-journaled");
		vec_for_each (&s->t->threads, th) {
			if (!ret)
				ret = move_thread(s->t, *th, h);
		}
		fault_point("patch-moved");
		if (!ret)
			ret = mem_write_text(&s->t->mem, h->addr, h->new_bytes, h->length);
		if (!ret && fault_fail("patch-text"))
			ret = -EIO;
		if (ret)
			return mp_fail(err, MP_EXIT_FAILURE, ret,
				       "cannot write the text of %s in %s: %s",
				       s->journal->name[h->name].name,
				       s->journal->name[h->name].module, strerror(-ret));
		fault_point("patch-written");
	}
	journal_set_state(s, SS_LIVE);
	return 0;
}

/* Moves the installed hooks to the plan index of their journal entries; other hooks of the batch
 * are dropped. */
static void settle_plan(struct hook_batch *b)
{
	struct session *s = b->s;

	for (uint32_t i = 0; i < b->put; i++) {
		uint32_t index = b->work[i].index;

		if (index < b->first)
			s->next_reused = index + 1;
		s->plan.hooks.at[index] = s->plan.hooks.at[b->first + i];
	}
	s->plan.hooks.n = s->journal->nhooks;
}

/*
 * Restores the text of the functions of a failed batch; the threads have not run since.  Their
 * journal entries remain, like those of unloaded modules, because a thread can have been moved to a
 * relocated copy.
 */
static void undo(struct hook_batch *b, enum ss_state before)
{
	struct session *s = b->s;
	struct ss_journal *j = s->journal;
	uint8_t now[SS_WINDOW];

	for (uint32_t k = 0; k < b->put; k++) {
		const struct ss_journal_hook *h = &b->work[k].hook;
		uint32_t i = b->work[k].index;

		/* Read back, because a failed write can have changed the first of two pages. */
		ignore_result(mem_write_text(&s->t->mem, h->addr, h->old_bytes, h->length));
		if (mem_read(&s->t->mem, h->addr, now, h->length) ||
		    memcmp(now, h->old_bytes, h->length))
			continue; /* session_close() tries again */
		journal_forget_hook(s, i);
		s->plan.hooks.at[i].gone = true;
	}
	if (j->state == SS_PATCHING)
		journal_set_state(s, before);
}

/* Is the text of the batch still what the plan was made from?  Since then libraries can have been
 * unloaded and others loaded in their place, or the program can have changed it. */
static bool text_unchanged(const struct hook_batch *b, const struct maps *maps)
{
	uint8_t now[SS_WINDOW];

	for (uint32_t i = 0; i < b->n; i++) {
		const struct ss_journal_hook *h = &b->work[i].hook;

		if (!journal_hook_mapped(maps, h) ||
		    mem_read(&b->s->t->mem, h->addr, now, h->length) ||
		    memcmp(now, h->old_bytes, h->length))
			return false;
	}
	return true;
}

/* Plans again, for example to find new places for islands that could not be mapped. */
static int replan(struct hook_batch *b, struct maps *maps, struct mp_err *err)
{
	int ret;

	maps_free(maps);
	ret = maps_read(b->s->t->pid, maps);
	return ret ? target_refused(b->s->t, ret, err) : batch_plan(b, maps, err);
}

enum outcome { DONE, AGAIN_AFTER_A_MOMENT, AGAIN_WITH_A_NEW_PLAN };

/* The process is not traced before hooks are installed, so it can have changed.  Return: 0 if it
 * runs the program that the session was opened in, or -ESRCH with @err. */
static int same_program(const struct session *s, const struct maps *maps, struct mp_err *err)
{
	if (session_is_mapped(s, maps))
		return 0;
	return mp_fail(
	    err, MP_EXIT_NO_PROCESS, -ESRCH,
	    maps->list.n
		? "process %d executed another program meanwhile; the new program was not touched"
		: "process %d has ended",
	    s->t->pid);
}

/*
 * Are entries that this batch reuses still in use?  An entry is in use if a thread can return to
 * its slot, or if a child that was forked since the plan was made has the text of the old module.
 * Return: 1 yes, and these entries are marked; 0 no; or -ENOMEM.
 */
static int entries_busy(struct hook_batch *b, const struct maps *maps)
{
	const struct ss_journal *j = b->s->journal;
	struct inside in;
	bool family;
	int ret = 0;

	if (!batch_reuses(b))
		return 0;
	if (inside_open(&in, b->s, false))
		return -ENOMEM;
	inside_read(&in);
	family = family_grew(&b->family);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t index = b->work[i].index;
		struct span slot;

		if (index >= b->first)
			continue;
		slot.start = j->hook[index].slot_addr;
		slot.end = slot.start + SLOT_BYTES;
		b->busy[index] = family || inside_slot(&in, &slot, maps);
		ret |= b->busy[index];
	}
	inside_free(&in);
	return ret;
}

/* Installs the batch; all threads must be stopped.  @may_wait: there is time for another stop.
 * Return: 0 or a negative errno; *@outcome is valid with 0. */
static int put_in(struct hook_batch *b, bool may_wait, enum outcome *outcome, struct mp_err *err)
{
	const struct maps *maps; /* including the stacks of new threads */
	int ret = fault_fail("patch-maps") ? -EIO : target_maps(b->s->t, &maps);

	*outcome = DONE;
	if (ret)
		return target_refused(b->s->t, ret, err);
	ret = same_program(b->s, maps, err);
	if (ret)
		return ret;
	if (!text_unchanged(b, maps)) {
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return may_wait ? 0
				: mp_fail(err, MP_EXIT_UNPATCHABLE, -EAGAIN,
					  "process %d keeps changing the allocator's text, or "
					  "keeps unloading and loading the allocator; try again",
					  b->s->t->pid);
	}
	ret = entries_busy(b, maps);
	if (ret < 0)
		return mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	if (ret) {
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return may_wait ? 0 : batch_no_entry(err);
	}
	if (windows_busy(b, maps)) {
		*outcome = AGAIN_AFTER_A_MOMENT;
		return may_wait ? 0
				: mp_fail(err, MP_EXIT_UNPATCHABLE, -EAGAIN,
					  "a signal handler keeps a thread at the start of an "
					  "allocator function; try again");
	}
	ret = batch_map_islands(b, err);
	if (ret == -EEXIST && may_wait) {
		/* The program has mapped something there in the meantime. */
		*outcome = AGAIN_WITH_A_NEW_PLAN;
		return 0;
	}
	/* Rows must be published before the hooks can record events. */
	if (!ret && (ret = fault_fail("patch-rows") ? -ENOMEM : batch_publish_islands(b)))
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot build unwind tables: %s",
			strerror(-ret));
	if (!ret)
		ret = batch_write_slots(b, err);
	return ret ? ret : write_text(b, err);
}

int session_install(struct session *s, struct mp_err *err)
{
	struct hook_batch b = {.s = s, .first = s->journal->nhooks};
	enum ss_state before = s->journal->state;
	enum outcome outcome = DONE;
	struct priority priority;
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps);

	if (ret) {
		s->plan.hooks.n = b.first;
		return target_refused(s->t, ret, err);
	}
	b.work = calloc(s->plan.hooks.n - b.first + 1, sizeof(*b.work));
	if (!b.work) {
		s->plan.hooks.n = b.first;
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	b.family.pid = s->t->pid;
	if (s->plan.hooks.n > SS_MAX_HOOKS && family_grew(&b.family))
		memset(b.busy, true, sizeof(b.busy));
	ret = batch_plan(&b, &maps, err);
	if (ret == -ENOMEM)
		mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	priority_raise(&priority);
	for (int tries = 0; !ret; tries++) {
		ret = s->stopped ? 0 : session_stop(s->t, err);
		if (!ret)
			ret = put_in(&b, tries < TRIES && !s->stopped, &outcome, err);
		if (ret || outcome == DONE)
			break;
		steps_add(s->t->steps, outcome == AGAIN_AFTER_A_MOMENT
					   ? "a thread is at the start of a function: waits"
					   : "the target has changed since the plan: plans again");
		if (outcome == AGAIN_AFTER_A_MOMENT) {
			target_run(s->t, 1000);
			continue;
		}
		target_release(s->t);
		ret = replan(&b, &maps, err);
	}
	settle_plan(&b);
	steps_add(s->t->steps, "installed %u hook%s%s", b.put, plural(b.put),
		  ret ? ", which are removed again" : "");
	if (ret)
		undo(&b, before);
	/* A program that was stopped before is restored by session_close() before it has run. */
	if (!ret || !s->stopped) {
		target_release(s->t);
		s->patch_stop_ns = s->t->last_stop_ns;
		s->stopped = false;
	}
	priority_restore(&priority);
	family_forget(&b.family);
	free(b.work);
	maps_free(&maps);
	return ret;
}
