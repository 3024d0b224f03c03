/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends a session: restores the text, waits until no thread is inside the agent, unmaps memprof's
 * memory and makes modified pages clean again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/map_file.h"
#include "inject/hooks/inside.h"
#include "inject/hooks/move.h"
#include "inject/hooks/stackwalk.h"
#include "inject/internal.h"
#include "lib/fault.h"
#include "lib/human.h"
#include "lib/priority.h"
#include "attach/steps.h"

#define DRAIN_MS     10000 /* for threads to leave the agent; all others run during that time */
#define LEAVE_MS     15	   /* in the first stop, while the threads outside stay stopped */
#define MIN_LEAVE_US 200
#define MIN_PAUSE_US 1000
#define MAX_PAUSE_US 64000 /* long enough for them to be scheduled on a busy machine */
#define PAGE	     4096ull

/* Return: whether the hook's module is mapped; @now: set to the bytes at its window. */
static bool window_now(const struct session *s, const struct maps *maps,
		       const struct ss_journal_hook *h, uint8_t now[SS_WINDOW])
{
	return journal_hook_mapped(maps, h) && !mem_read(&s->t->mem, h->addr, now, h->length);
}

/* Jumps of several instructions that are in the text, and their hooks. */
struct jumps {
	uint32_t n;
	struct span span[SS_MAX_HOOKS];
	const struct ss_journal_hook *hook[SS_MAX_HOOKS];
};

static void find_jumps(const struct session *s, const struct maps *maps, struct jumps *jumps)
{
	const struct ss_journal *j = s->journal;

	jumps->n = 0;
	for (uint32_t i = 0; i < j->nhooks && s->t->arch->patch.long_jump; i++) {
		const struct ss_journal_hook *h = &j->hook[i];
		uint8_t now[SS_WINDOW];

		if (!h->length || !window_now(s, maps, h, now) ||
		    !move_jump(s->t->arch, h, now, &jumps->span[jumps->n]))
			continue;
		jumps->hook[jumps->n++] = h;
	}
}

static int leave_jump(struct target *t, struct thread *th, const struct jumps *jumps)
{
	struct arch_regs regs;
	bool moved = false;

	if (thread_get_regs(t, th))
		return 0; /* waits in vfork, or is being killed */
	regs = th->regs;
	for (uint32_t i = 0; i < jumps->n && !moved; i++)
		moved = move_out_of_jump(t->arch, jumps->hook[i], &regs);
	return moved ? thread_put_regs(t, th, &regs) : 0;
}

/* Moves threads that are in a window's jump to its start.  Return: false if one stays: a signal
 * handler can return there (signal frames that are not in use any more count), or the thread's
 * registers cannot be written. */
static bool leave_jumps(struct session *s, const struct maps *maps)
{
	struct jumps jumps;

	find_jumps(s, maps, &jumps);
	if (!jumps.n)
		return true;
	vec_for_each (&s->t->threads, th) {
		if (stack_interrupted(s->t, *th, maps, jumps.span, jumps.n) ||
		    leave_jump(s->t, *th, &jumps))
			return false;
	}
	return true;
}

/*
 * Restores the original bytes of all windows.  A hook whose module was unloaded can still be in the
 * text of a child that was forked before, for which the parent's journal is used.
 * Return: number of windows that were left alone because another tool has changed them.
 */
static uint32_t restore_text(struct session *s, const struct maps *maps)
{
	struct ss_journal *j = s->journal;
	uint32_t foreign = 0;
	uint8_t now[SS_WINDOW];

	for (uint32_t i = 0; i < j->nhooks; i++) {
		struct ss_journal_hook *h = &j->hook[i];

		if (!h->length || !window_now(s, maps, h, now) ||
		    memcmp(now, h->new_bytes, h->length))
			continue;
		/* The second loop checks the text after this. */
		ignore_result(mem_write_text(&s->t->mem, h->addr, h->old_bytes, h->length));
		fault_point("close-restored");
	}
	for (uint32_t i = 0; i < j->nhooks; i++) {
		struct ss_journal_hook *h = &j->hook[i];

		foreign += h->patched && window_now(s, maps, h, now) &&
			   memcmp(now, h->old_bytes, h->length);
	}
	return foreign;
}

/* Moves a thread in an island back to the same instruction of the restored text.  Return: false if
 * it stays inside: its instruction has no counterpart in the text, or its registers cannot be
 * written. */
static bool move_thread_back(struct session *s, struct thread *th)
{
	const struct ss_journal *j = s->journal;
	enum moved moved = MOVED_OUTSIDE;
	struct target *t = s->t;
	struct arch_regs regs;

	if (thread_get_regs(t, th))
		return true;
	regs = th->regs;
	for (uint32_t i = 0; i < j->nhooks && moved == MOVED_OUTSIDE; i++)
		moved = move_back(t->arch, &j->hook[i], &regs);
	if (moved != MOVED_BACK)
		return moved == MOVED_OUTSIDE;
	if (thread_put_regs(t, th, &regs))
		return false;
	fault_point("close-moved");
	return true;
}

/* Makes a text page that was the file's page before the session share that page again. */
static void clean_page(struct session *s, struct remote *r, const struct maps *maps,
		       const struct ss_journal_hook *h, uint64_t page)
{
	const struct map *m = maps_find(maps, page);
	uint8_t mem[PAGE];
	uint64_t args[6] = {page, PAGE, MADV_DONTNEED};
	long ignored;

	if (!h->page_was_clean || !m || m->write || !journal_hook_mapped(maps, h))
		return;
	if (!mem_read(&s->t->mem, page, mem, PAGE) && map_has(s->t->pid, m, page, mem, PAGE))
		/* If this fails, the page remains a private copy that equals the file. */
		ignore_result(remote_syscall(r, s->t->arch->nr.madvise, args, &ignored));
	fault_point("close-cleaned");
}

/* The filter was installed after the session had begun. */
static int filter_forbids(const struct target *t, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NOT_RESTORED, -EACCES,
		       "the text of process %d is restored, but its seccomp filter does not allow "
		       "munmap, or cannot be read; memprof's pages stay; if it cannot be read, "
		       "remove them with CAP_SYS_ADMIN and: memprof detach -p %d",
		       t->pid, t->pid);
}

static int take_out(struct session *s, const struct maps *maps, struct mp_err *err)
{
	const struct ss_journal *j = s->journal;
	struct remote r;
	int ret = remote_begin(&r, s->t, err), ended;

	if (ret == -EACCES)
		return filter_forbids(s->t, err);
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
	ended = remote_end(&r);
	if (ret == -EACCES)
		return filter_forbids(s->t, err);
	if (ret)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			       "cannot unmap the agent of process %d: %s", s->t->pid,
			       strerror(-ret));
	return ended ? mp_fail(err, MP_EXIT_NOT_RESTORED, ended,
			       "the agent was removed from process %d, but the registers of thread "
			       "%d could not be restored: %s",
			       s->t->pid, r.carrier->tid, strerror(-ended))
		     : 0;
}

static void set_state(struct session *s, bool child, enum ss_state state)
{
	if (!child)
		journal_set_state(s, state);
}

/* @ret, @maps: result of reading the mappings.  Return: 0 if they contain the session, or a
 *	negative errno with @err. */
static int check_session(const struct session *s, int ret, const struct maps *maps,
			 struct mp_err *err)
{
	if (!ret && session_is_mapped(s, maps))
		return 0;
	if (ret && ret != -ESRCH)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			       "cannot inspect process %d: %s; the session stays in it, remove it "
			       "with: memprof detach -p %d",
			       s->t->pid, strerror(-ret), s->t->pid);
	return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
		       "process %d has ended or runs another program: there is nothing to restore",
		       s->t->pid);
}

static int still_there(const struct session *s, struct mp_err *err)
{
	struct maps maps;
	int ret = maps_read(s->t->pid, &maps), there = check_session(s, ret, &maps, err);

	if (!ret)
		maps_free(&maps);
	return there;
}

/* For a recorder that died before it had mapped the block. */
static int close_descriptor(struct session *s, struct mp_err *err)
{
	struct remote r;
	int ret = session_stop(s->t, err);

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

/* Why memprof's pages stay in the target. */
struct obstacle {
	uint32_t foreign; /* windows that another tool has changed */
	pid_t sharer;	  /* another process that shares the memory */
	bool coroutine;	  /* a stack that no thread uses has frames of the agent */
	bool vfork;	  /* a thread waits in vfork() for a child, which can be inside the agent */
	bool jump;	  /* a thread stays in a window's jump, so that the text is not restored */
};

static int pages_stay(const struct target *t, const struct obstacle *why, struct mp_err *err)
{
	if (why->jump)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "a signal handler keeps a thread of process %d at the start of an "
			       "allocator function, whose text is not restored; remove the hooks "
			       "later with: memprof detach -p %d",
			       t->pid, t->pid);
	if (why->foreign)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "%u function%s of process %d %s changed by another tool and not "
			       "restored; memprof's pages stay",
			       why->foreign, plural(why->foreign), t->pid,
			       why->foreign == 1 ? "was" : "were");
	if (why->sharer)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "the text of process %d is restored, but process %d, which shares "
			       "its memory, may be inside the agent; its pages stay, remove them "
			       "after that process has ended with: memprof detach -p %d",
			       t->pid, why->sharer, t->pid);
	if (why->coroutine)
		return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
			       "the text of process %d is restored, but a coroutine was suspended "
			       "inside an allocator function and will return through the agent; "
			       "its pages stay, remove them later with: memprof detach -p %d",
			       t->pid, t->pid);
	if (why->vfork)
		return mp_fail(
		    err, MP_EXIT_NOT_RESTORED, -EAGAIN,
		    "the text of process %d is restored, but a thread waits in vfork() "
		    "for its child, which shares its memory and may be inside the "
		    "agent; its pages stay, remove them later with: memprof detach -p %d",
		    t->pid, t->pid);
	return mp_fail(err, MP_EXIT_NOT_RESTORED, -EAGAIN,
		       "the text of process %d is restored, but a thread is still inside the "
		       "agent; its pages stay, remove them later with: memprof detach -p %d",
		       t->pid, t->pid);
}

/* Stops all threads; @maps: as in target_maps().  Tries again on a machine that is too busy for
 * them to stop in time, because otherwise patched text would remain. */
static int stop_all(struct session *s, const struct maps **maps, const struct deadline *end,
		    struct mp_err *err)
{
	int ret;

	do {
		ret = session_stop(s->t, err);
	} while (ret == -ETIMEDOUT && !deadline_passed(end));
	if (ret)
		return ret;
	ret = target_maps(s->t, maps);
	ret = check_session(s, ret, *maps, err);
	if (ret)
		target_release(s->t);
	return ret;
}

/*
 * Checks all stopped threads, after the text was restored; sets keep for those inside.  If all
 * threads wait in vfork(), all are kept: the drain has more time for them than remote_begin().
 * Return: the number of kept threads.
 */
static uint32_t find_inside(struct session *s, struct inside *in, const struct maps *maps)
{
	uint32_t n = 0;

	inside_read(in);
	vec_for_each (&s->t->threads, it) {
		(*it)->keep = !move_thread_back(s, *it) || inside_thread(in, *it, maps);
		n += (*it)->keep;
	}
	inside_note(in);
	if (!target_in_vfork(s->t))
		return n;
	vec_for_each (&s->t->threads, it)
		(*it)->keep = true;
	return (uint32_t)s->t->threads.n;
}

static bool keeps_in_vfork(const struct session *s)
{
	vec_for_each (&s->t->threads, it) {
		if ((*it)->keep && (*it)->state == THREAD_IN_VFORK)
			return true;
	}
	return false;
}

/* Is a thread in a hook, and has none stopped by itself, which shows that it has returned from
 * vfork()? */
static bool wait_longer(const struct session *s, const struct inside *in)
{
	bool any = false;

	vec_for_each (&s->t->threads, it) {
		if ((*it)->state == THREAD_STOPPED)
			return false;
		any |= inside_hook(in, *it);
	}
	return any;
}

/*
 * Lets the *@inside threads run until they have left the agent, within the stop: with the
 * processors to themselves most need only microseconds.  Threads that have left are kept stopped,
 * so that those still inside get CPU time.  The time is limited, because a thread that waits for a
 * lock of a stopped thread does not leave.
 * Return: 0 with *@inside the number of threads still inside, or a negative errno with @err and all
 * threads released.
 */
static int let_leave(struct session *s, struct inside *in, uint32_t *inside,
		     const struct maps **maps, struct mp_err *err)
{
	struct deadline end = deadline_in_ms(LEAVE_MS);

	for (uint32_t us = MIN_LEAVE_US; *inside && !deadline_passed(&end); us *= 2) {
		struct deadline stop = session_stop_deadline(s->t);
		int ret = target_run_kept(s->t, us, inside_hook, in, &stop, err);

		if (!ret && (ret = target_maps(s->t, maps))) {
			ret = target_refused(s->t, ret, err);
			target_release(s->t);
		}
		if (ret)
			return ret;
		*inside = find_inside(s, in, *maps);
	}
	return 0;
}

/*
 * Lets the threads inside run until they have left; all others have been released.  A pause ends
 * early if the accounts show no thread in a hook any more.  Interrupting a thread that has not been
 * scheduled yet would gain nothing.
 * Return: whether the next stop can begin.  Threads that have left are then still stopped, so that
 * one that calls vfork() all the time is not in the next vfork() by then.
 */
static bool wait_for_exits(struct session *s, struct inside *in, const struct deadline *drain)
{
	uint32_t pause_us = MIN_PAUSE_US;
	const struct maps *maps;

	while (!deadline_passed(drain)) {
		struct deadline stop = session_stop_deadline(s->t);

		for (uint32_t us = 0; us < pause_us; us += MIN_PAUSE_US) {
			target_run(s->t, MIN_PAUSE_US);
			if (!wait_longer(s, in))
				break;
		}
		pause_us = pause_us < MAX_PAUSE_US ? 2 * pause_us : pause_us;
		if (target_stop(s->t, &stop, NULL) || target_maps(s->t, &maps))
			return false; /* they have ended or missed the deadline */
		if (!find_inside(s, in, maps))
			return true;
		target_release_others(s->t);
	}
	return false;
}

/*
 * Restores the text in a first stop of all threads, and removes everything in the first stop in
 * which no thread is inside.  Between stops the threads that are outside run untraced.
 * Return: 1 everything removed, 0 the pages stay (@why), or a negative errno with @err.
 */
static int restore(struct session *s, bool child, struct inside *in, struct obstacle *why,
		   struct mp_err *err)
{
	struct deadline drain = deadline_in_ms(DRAIN_MS);
	const struct maps *maps = NULL;
	struct priority priority;
	bool restored = false;
	int ret;

	priority_raise(&priority);
	for (;;) {
		uint32_t inside;

		ret = stop_all(s, &maps, &drain, err);
		if (ret)
			break;
		why->jump = !restored && !leave_jumps(s, maps);
		if (why->jump) {
			if (deadline_passed(&drain))
				break;
			target_run(s->t, MIN_PAUSE_US);
			continue;
		}
		if (!restored) {
			set_state(s, child, SS_RESTORING);
			why->foreign = restore_text(s, maps);
			restored = true;
			steps_add(s->t->steps, "restored the text of %u hook%s, left %u alone",
				  s->journal->nhooks - why->foreign,
				  plural(s->journal->nhooks - why->foreign), why->foreign);
		}
		if (why->foreign || why->sharer)
			break;
		inside = find_inside(s, in, maps);
		ret = let_leave(s, in, &inside, &maps, err);
		if (ret)
			break;
		steps_add(s->t->steps, "%u thread%s inside the agent", inside, plural(inside));
		why->vfork = keeps_in_vfork(s);
		why->coroutine = !inside && inside_coroutine(in, maps);
		if (!inside && !why->coroutine) {
			ret = take_out(s, maps, err);
			if (ret == -EACCES)
				set_state(s, child, SS_DORMANT);
			ret = ret ? ret : 1;
			fault_point("close-taken-out");
			break;
		}
		if (why->coroutine || deadline_passed(&drain))
			break;
		target_release_others(s->t);
		s->close_stop_ns += s->t->last_stop_ns;
		if (wait_for_exits(s, in, &drain))
			target_include_others(s->t);
		else
			target_release(s->t);
		fault_point("close-left");
	}
	target_release(s->t);
	priority_restore(&priority);
	s->close_stop_ns += s->t->last_stop_ns;
	return ret;
}

/* Adds to the error of a failed stop that the process was not left as it was found. */
static void say_it_stays(const struct session *s, struct mp_err *err)
{
	struct mp_err why = *err;

	mp_fail(err, MP_EXIT_NOT_RESTORED, 0,
		"%s; the session stays in it, remove it with: memprof detach -p %d", why.what,
		s->t->pid);
}

int session_close(struct session *s, struct mp_err *err)
{
	struct obstacle why = {0};
	uint64_t begun = mono_ns();
	struct inside in = {0};
	bool child;
	int ret;

	if (!s->block)
		return close_descriptor(s, err);
	ret = still_there(s, err);
	if (ret)
		return ret;
	/* The recorder can have changed the journal since it was adopted. */
	if (s->adopted && journal_load(s))
		return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the session's journal is damaged");
	child = session_is_child(s);
	/* If this fails, calls are recorded until the text is restored, which does no harm. */
	if (!child)
		ignore_result(session_mute(s));
	fault_point("close-muted");
	why.sharer = target_sharer(s->t);
	ret = inside_open(&in, s, child);
	if (ret)
		mp_fail(err, MP_EXIT_NOT_RESTORED, ret,
			"out of memory; the agent stays in process %d, remove it with: memprof "
			"detach -p %d",
			s->t->pid, s->t->pid);
	else
		ret = restore(s, child, &in, &why, err);
	inside_free(&in);
	if (!ret) {
		set_state(s, child, SS_DORMANT);
		ret = pages_stay(s->t, &why, err);
	} else if (ret < 0 && !still_there(s, NULL)) {
		/* Not the process has ended, only a thread. */
		ret = ret == -ESRCH ? -EAGAIN : ret;
		if (err && ret == -ETIMEDOUT)
			say_it_stays(s, err);
		else if (err)
			err->exit = MP_EXIT_NOT_RESTORED;
	}
	s->close_ns = mono_ns() - begun;
	return ret > 0 ? 0 : ret;
}
