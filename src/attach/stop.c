/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stops and resumes all seized threads of a process.  A thread that is only stopped has its
 * registers left alone, unless its system call must be restarted (attach/restart.h).
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include "attach/check.h"
#include "attach/restart.h"
#include "attach/threads.h"
#include "lib/fault.h"
#include "lib/human.h"
#include "attach/steps.h"

#define SPIN_NS 100000 /* without a sleep: most threads stop within this time */
#define LOOK_US 100    /* the longest time that a thread stays stopped for a signal */

static uint32_t running(const struct target *t)
{
	uint32_t n = 0;

	vec_for_each (&t->threads, it)
		n += (*it)->state == THREAD_RUNNING;
	return n;
}

static pid_t last_running(const struct target *t)
{
	pid_t tid = 0;

	vec_for_each (&t->threads, it) {
		if ((*it)->state == THREAD_RUNNING)
			tid = (*it)->tid;
	}
	return tid;
}

/* Writes what the thread waits for into @why.  A thread that is ready to run has the wait channel
 * "0". */
static void why_slow(const struct target *t, pid_t tid, char why[static 96])
{
	char path[64], wchan[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", t->pid, tid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(wchan, sizeof(wchan), f))
			wchan[0] = 0;
		fclose(f);
	}
	if (!strcmp(wchan, "0"))
		strcpy(why, "it is ready to run, but gets no processor time");
	else
		snprintf(why, 96, "it waits in the kernel at %s", wchan[0] ? wchan : "?");
}

static int too_slow(struct target *t, struct mp_err *err)
{
	pid_t slow = last_running(t);
	uint32_t left = running(t);
	size_t all = t->threads.n;
	char why[96];

	why_slow(t, slow, why);
	target_release(t);
	return mp_fail(
	    err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
	    "thread %d of process %d did not stop in time (%s; %u of %zu thread%s did not "
	    "stop); the process was left alone",
	    slow, t->pid, why, left, all, plural(all));
}

static void interrupt(struct target *t, struct thread *th)
{
	th->interrupt_sent = true;
	if (ptrace(PTRACE_INTERRUPT, th->tid, 0, 0) && errno == ESRCH)
		thread_late(t, th);
}

static void interrupt_new(struct target *t)
{
	vec_for_each (&t->threads, it) {
		if ((*it)->state == THREAD_RUNNING && !(*it)->interrupt_sent)
			interrupt(t, *it);
	}
}

/* waitpid() reports the end of a main thread only after all others have ended. */
static bool is_dead_main(const struct target *t, const struct thread *th)
{
	struct proc_status st;

	return th->tid == t->pid && !proc_status_read(t->pid, 0, &st) && st.state == 'Z' &&
	       st.threads > 1;
}

/* Stops all threads that are known.  Return: 0, or -ETIMEDOUT with @err and everything released. */
static int stop_known(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	uint64_t last_ns = mono_ns(); /* when something was collected */

	interrupt_new(t);
	while (running(t)) {
		if (threads_collect(t)) {
			last_ns = mono_ns();
			interrupt_new(t);
			continue;
		}
		if (mono_ns() - last_ns < SPIN_NS) {
			sched_yield();
			continue;
		}
		threads_catch_up(t);
		vec_for_each (&t->threads, it) {
			if ((*it)->state != THREAD_RUNNING)
				continue;
			if (thread_waits_in_vfork(t, *it))
				(*it)->state = THREAD_IN_VFORK;
			else if (is_dead_main(t, *it))
				thread_late(t, *it);
		}
		if (deadline_passed(deadline))
			return too_slow(t, err);
		wait_longer_each_time(last_ns);
	}
	threads_drop_gone(t);
	return 0;
}

/* Checks that a thread is stopped and that the process runs the program that target_look() found.
 * Return: 0, or -ESRCH with @err. */
static int still_itself(const struct target *t, struct mp_err *err)
{
	if (t->exited || (!t->threads.n && !check_alive(t)))
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "process %d has ended", t->pid);
	if (target_check_program(t, err))
		return -ESRCH;
	if (!t->threads.n)
		return mp_fail(
		    err, MP_EXIT_NO_PROCESS, -ESRCH,
		    "the thread of process %d that memprof had chosen has ended; try again",
		    t->pid);
	return 0;
}

/* Interrupts all threads, including new ones, and waits for their stops.  Return: as target_stop().
 */
static int bring_to_stop(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	int fresh;

	do {
		fresh = stop_known(t, deadline, err);
		if (fresh)
			return fresh;
		/* New threads of seized threads are seized by the kernel; a thread that was missed
		 * between two passes of target_seize() is found here. */
		if (!t->exited && !t->some_only)
			fresh = threads_seize_new(t, deadline, err);
		if (fresh > 0 && deadline_passed(deadline))
			return too_slow(t, err);
	} while (!t->exited && !t->some_only && threads_seize_more(t, fresh, deadline));
	if (fresh >= 0)
		fresh = still_itself(t, err);
	if (fresh < 0 || !t->threads.n) {
		target_release(t);
		return fresh;
	}
	t->mem.tid = t->threads.at[0]->tid;
	return 0;
}

int target_stop(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	int ret;

	target_maps_changed(t);
	vec_for_each (&t->threads, it)
		(*it)->interrupt_sent = false;
	t->stopped_at_ns = mono_ns();
	ret = bring_to_stop(t, deadline, err);
	if (!ret)
		fault_point("stopped");
	steps_add(t->steps, ret ? "could not stop all of %zu thread%s" : "stopped %zu thread%s",
		  t->threads.n, plural(t->threads.n));
	return ret;
}

static void resume(struct target *t, struct thread *th)
{
	bool listens = th->state == THREAD_GROUP_STOPPED;

	if (th->state == THREAD_IN_VFORK) {
		th->state = THREAD_RUNNING; /* its interrupt is still pending */
		return;
	}
	if (th->state == THREAD_RUNNING || th->state == THREAD_GONE)
		return;
	if (!listens) {
		thread_restart(t, th);
		thread_spare_wait(t, th);
	}
	th->state = THREAD_RUNNING;
	th->regs_valid = th->lent = th->interrupt_sent = false;
	fault_point("resume");
	/* A thread in a job control stop stays stopped, but listens (ptrace(2), PTRACE_LISTEN). */
	if (ptrace(listens ? PTRACE_LISTEN : PTRACE_CONT, th->tid, 0, 0) && errno == ESRCH)
		thread_late(t, th);
}

void target_run(struct target *t, uint32_t us)
{
	uint64_t end;
	bool any;

	vec_for_each (&t->threads, it)
		resume(t, *it);
	t->mem.tid = 0;
	t->last_stop_ns = mono_ns() - t->stopped_at_ns;
	end = mono_ns() + us * 1000ull;
	do {
		usleep(LOOK_US);
		any = threads_collect(t);
		any |= threads_collect_late(t);
		if (!any)
			continue;
		vec_for_each (&t->threads, it) {
			/* A thread that returned from vfork() stays stopped until target_stop(): if
			 * resumed, it could be in the next vfork() by then. */
			if (!(*it)->interrupt_sent)
				resume(t, *it);
		}
	} while (mono_ns() < end);
}

/* Stops marked threads that are not @busy any more.  Return: whether a marked thread is left. */
static bool stop_done(struct target *t, bool (*busy)(const void *ctx, const struct thread *th),
		      const void *ctx)
{
	bool left = false;

	vec_for_each (&t->threads, it) {
		struct thread *th = *it;

		if (!th->keep || th->state == THREAD_GONE)
			continue;
		/* It has returned from vfork(), and would be in the next one. */
		if (th->state == THREAD_STOPPED && th->interrupt_sent) {
			th->keep = false;
			continue;
		}
		if (th->state == THREAD_RUNNING && !busy(ctx, th)) {
			th->keep = false;
			interrupt(t, th);
			continue;
		}
		resume(t, th);
		left = true;
	}
	return left;
}

int target_run_kept(struct target *t, uint32_t us,
		    bool (*busy)(const void *ctx, const struct thread *th), const void *ctx,
		    const struct deadline *deadline, struct mp_err *err)
{
	uint64_t end = mono_ns() + us * 1000ull;

	target_maps_changed(t);
	vec_for_each (&t->threads, it) {
		if ((*it)->keep)
			resume(t, *it);
	}
	t->mem.tid = 0;
	do {
		usleep(LOOK_US);
		threads_collect(t);
		threads_collect_late(t);
	} while (stop_done(t, busy, ctx) && mono_ns() < end);
	return bring_to_stop(t, deadline, err);
}
