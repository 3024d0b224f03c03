/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaving: text restored, every thread out of our code, memory unmapped, pages clean again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "inject/internal.h"
#include "inject/stackwalk.h"
#include "lib/fault.h"

#define DRAIN_MS     2000 /* for threads to leave the agent, running in between, and */
#define DRAIN_ROUNDS 16	  /* so often: on a busy machine the stops alone take longer */
#define MIN_PAUSE_US 1000
#define MAX_PAUSE_US 64000 /* so that they come to run on a busy machine */
#define FREE_ROUNDS  2
#define PAGE	     4096ull

/* Return: number of windows that were left alone because somebody else changed them. */
static uint32_t restore_text(struct session *s, const struct maps *maps)
{
	struct ss_journal *j = s->journal;
	uint32_t foreign = 0;
	uint8_t now[SS_WINDOW];

	for (uint32_t i = 0; i < j->nhooks; i++) {
		struct ss_journal_hook *h = &j->hook[i];

		if (!h->patched || !journal_hook_mapped(maps, h) ||
		    mem_read(&s->t->mem, h->addr, now, h->length))
			continue; /* the module is gone, and its text with it */
		if (!memcmp(now, h->old_bytes, h->length))
			continue;
		if (memcmp(now, h->new_bytes, h->length)) {
			foreign++;
			continue;
		}
		if (mem_write(&s->t->mem, h->addr, h->old_bytes, h->length))
			foreign++;
		fault_point("close-restored");
	}
	return foreign;
}

/* A thread in an island is at an instruction that the restored text has too.  Return: false when
 * it is not: between the instructions that one of the text has become. */
static bool move_back(struct session *s, struct thread *th)
{
	const struct ss_journal *j = s->journal;
	struct target *t = s->t;
	struct arch_regs regs;
	uint64_t pc, to = 0;
	bool inside = false;

	if (thread_get_regs(t, th))
		return true;
	pc = t->arch->get_pc(&th->regs);
	for (uint32_t i = 0; i < j->nhooks && !to; i++) {
		const struct ss_journal_hook *h = &j->hook[i];
		uint64_t end = h->relocated_addr + h->relocated_length;

		if (pc >= h->slot_addr + SLOT_ENTRY && pc < h->relocated_addr)
			to = h->addr; /* the slot's entry has changed nothing but a scratch register
				       */
		else if (pc >= h->relocated_addr && pc < end)
			to = t->arch->groups ? 0 : h->addr + h->length; /* the jump back */
		inside |= pc >= h->relocated_addr && pc < end;
		for (uint32_t k = 0; k < h->insns; k++) {
			if (pc == h->relocated_addr + h->new_off[k])
				to = h->addr + h->old_off[k];
		}
	}
	if (!to)
		return !inside;
	regs = th->regs;
	t->arch->set_pc(&regs, to);
	thread_put_regs(t, th, &regs);
	fault_point("close-moved");
	return true;
}

/* Where no thread may be or return to: our own code.  Signal frames behind it are a reason to look
 * closer: what they interrupted may be on another stack. */
struct places {
	spans_t spans;
	uint32_t own;
};

static int find_places(const struct session *s, struct places *p)
{
	const struct ss_journal *j = s->journal;
	struct span agent = {j->agent_addr, j->agent_addr + j->agent_length};

	if (vec_push(&p->spans, agent))
		return -ENOMEM;
	for (uint32_t i = 0; i < j->nislands; i++) {
		struct span island = {j->island[i].addr, j->island[i].addr + j->island[i].length};

		if (vec_push(&p->spans, island))
			return -ENOMEM;
	}
	p->own = (uint32_t)p->spans.n;
	return block_signal_frames(s->block, s->length, &p->spans);
}

static bool thread_clear(struct session *s, struct thread *th, const struct maps *maps,
			 const struct places *p)
{
	if (th->state == THREAD_IN_VFORK)
		return false; /* cannot be looked at: wait for its child */
	/* Stale words stay on stacks for long: a whole walk without us says it too. */
	return move_back(s, th) &&
	       (!stack_mentions(s->t, th, maps, p->spans.at, (uint32_t)p->spans.n, false) ||
		stack_walk(s->t, th, s->block, s->length, p->spans.at, p->own) == WALK_CLEAR);
}

/* @hold: who is out stands in the next round, so that who is not gets the processors: on a busy
 * machine those that are out would use them up. */
static bool all_clear(struct session *s, const struct maps *maps, const struct places *p, bool hold)
{
	bool all = true;

	vec_for_each (&s->t->threads, it) {
		bool clear = thread_clear(s, *it, maps, p);

		(*it)->held = hold && clear;
		all &= clear;
		if (!all && !hold)
			break;
	}
	return all;
}

/* Text pages that were the file's before are the file's again. */
static void clean_page(struct session *s, struct remote *r, const struct maps *maps,
		       const struct ss_journal_hook *h, uint64_t page)
{
	const struct map *m = maps_find(maps, page);
	uint8_t mem[PAGE], file[PAGE];
	uint64_t args[6] = {page, PAGE, MADV_DONTNEED};
	long ignored;
	int fd;

	if (!h->page_was_clean || !m || m->write || !journal_hook_mapped(maps, h))
		return;
	fd = proc_open_map(s->t->pid, m);
	if (fd < 0)
		return;
	if (pread(fd, file, PAGE, (off_t)(page - m->start + m->offset)) == (ssize_t)PAGE &&
	    !mem_read(&s->t->mem, page, mem, PAGE) && !memcmp(mem, file, PAGE))
		remote_syscall(r, s->t->arch->nr.madvise, args, &ignored);
	fault_point("close-cleaned");
	close(fd);
}

static int take_out(struct session *s, const struct maps *maps, struct mp_err *err)
{
	const struct ss_journal *j = s->journal;
	struct remote r;
	int ret = remote_begin(&r, s->t, err);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < j->nhooks; i++) {
		const struct ss_journal_hook *h = &j->hook[i];
		uint64_t first = h->addr & ~(PAGE - 1),
			 last = (h->addr + h->length - 1) & ~(PAGE - 1);

		clean_page(s, &r, maps, h, first);
		if (last != first)
			clean_page(s, &r, maps, h, last);
	}
	if (s->adopted)
		ret = session_close_leaked(&r);
	if (!ret)
		ret = session_unmap(&r, j);
	remote_end(&r);
	return ret ? mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			     "cannot unmap the agent of process %d: %s", s->t->pid, strerror(-ret))
		   : 0;
}

bool session_is_child(struct session *s)
{
	uint64_t addr, length;
	struct ss_gate gate;
	struct maps maps;

	if (!s->journal || maps_read(s->t->pid, &maps))
		return false;
	addr = session_find(&maps, &length);
	maps_free(&maps);
	return session_is_of(s->journal, s->t->pid, addr) && s->journal->state != SS_OPENING &&
	       !mem_read(&s->t->mem, s->journal->gate_addr, &gate, sizeof(gate)) &&
	       !gate.session_addr;
}

static void set_state(struct session *s, bool child, enum ss_state state)
{
	if (!child)
		journal_set_state(s, state);
}

static int still_there(struct session *s, struct maps *maps, struct mp_err *err)
{
	uint64_t length = 0;
	int ret = maps_read(s->t->pid, maps);

	if (!ret && session_find(maps, &length) == s->journal->session_addr &&
	    length == s->journal->session_length)
		return 0;
	if (!ret)
		maps_free(maps);
	return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
		       "process %d has ended or runs another program: there is nothing to restore",
		       s->t->pid);
}

/* The recorder died before it had mapped the block. */
static int close_descriptor(struct session *s, struct mp_err *err)
{
	struct deadline deadline = session_stop_deadline(s->t);
	struct remote r;
	int ret = target_seize(s->t, &deadline, err);

	deadline = session_stop_deadline(s->t);
	if (!ret)
		ret = target_stop(s->t, &deadline, err);
	if (!ret)
		ret = remote_begin(&r, s->t, err);
	if (!ret) {
		int closed = session_close_leaked(&r);

		ret = remote_end(&r);
		ret = closed ? closed : ret;
		if (ret)
			mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
				"cannot close memprof's descriptor in process %d: %s", s->t->pid,
				strerror(-ret));
	}
	target_release(s->t);
	return ret;
}

static int pages_stay(const struct target *t, uint32_t foreign, pid_t sharer, struct mp_err *err)
{
	if (foreign)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "%u functions of process %d were changed by somebody else and left "
			       "alone; memprof's pages stay",
			       foreign, t->pid);
	if (sharer)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "the text of process %d is restored, but process %d, which shares "
			       "its memory, may be inside the agent; its pages stay until that "
			       "one has ended, and: memprof detach -p %d",
			       t->pid, sharer, t->pid);
	return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
		       "the text of process %d is restored, but a thread is still inside the "
		       "agent; its pages stay until: memprof detach -p %d",
		       t->pid, t->pid);
}

int session_close(struct session *s, struct mp_err *err)
{
	struct deadline stop = session_stop_deadline(s->t), drain = deadline_in_ms(DRAIN_MS);
	struct target *t = s->t;
	uint32_t foreign = 0, round = 0, pause_us = MIN_PAUSE_US;
	struct places places = {0};
	struct maps maps;
	bool child, clear;
	pid_t sharer;
	int ret;

	if (!s->block)
		return close_descriptor(s, err);
	ret = still_there(s, &maps, err);
	if (ret)
		return ret;
	/* Its recorder may have lived on since it was adopted. */
	if (s->adopted && journal_load(s)) {
		maps_free(&maps);
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the session's journal is damaged");
	}
	child = session_is_child(s);
	if (!child)
		session_mute(s);
	fault_point("close-muted");
	sharer = target_sharer(t);
	ret = find_places(s, &places);
	if (!ret && !t->threads.n)
		ret = target_seize(t, &stop, err);
	stop = session_stop_deadline(t);
	for (; !ret; round++) {
		ret = target_stop(t, &stop, err);
		if (ret)
			break;
		maps_free(&maps);
		ret = still_there(s, &maps, err);
		if (ret) {
			vec_free(&places.spans);
			return target_release(t), ret;
		}
		if (!round) {
			set_state(s, child, SS_RESTORING);
			foreign = restore_text(s, &maps);
		}
		/* Not in every round: who stands may hold a lock that the others wait for. */
		clear = !foreign && !sharer &&
			all_clear(s, &maps, &places, round >= FREE_ROUNDS && !(round % 2));
		if (clear || foreign || sharer ||
		    (round >= DRAIN_ROUNDS && deadline_passed(&drain)))
			break;
		target_run(t, pause_us);
		pause_us = pause_us < MAX_PAUSE_US ? 2 * pause_us : pause_us;
		stop = session_stop_deadline(s->t);
	}
	if (!ret && clear) {
		ret = take_out(s, &maps, err);
		fault_point("close-taken-out");
	} else if (!ret) {
		set_state(s, child, SS_DORMANT);
		ret = pages_stay(t, foreign, sharer, err);
	}
	target_release(t);
	s->close_stop_ns = t->last_stop_ns;
	vec_free(&places.spans);
	maps_free(&maps);
	return ret;
}
