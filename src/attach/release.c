/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Releases threads from ptrace, including those that do not stop for it. */
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include "attach/restart.h"
#include "attach/threads.h"
#include "lib/fault.h"
#include "lib/human.h"
#include "attach/steps.h"

#define LATE_MS 200 /* for threads that are dying; others are released later */

/* PTRACE_DETACH needs a stop: stops a running seized thread. */
static void stop_for_detach(struct target *t, struct thread *th, const struct deadline *deadline)
{
	uint64_t begun_ns = mono_ns();

	th->interrupt_sent = true;
	ptrace(PTRACE_INTERRUPT, th->tid, 0, 0);
	while (th->state == THREAD_RUNNING) {
		if (thread_collect(t, th))
			continue;
		if (deadline_passed(deadline) || thread_waits_in_vfork(t, th))
			return;
		wait_longer_each_time(begun_ns);
		/* The thread can be waiting for the others in execve(). */
		threads_catch_up(t);
	}
}

/* Return: false if the thread could not be released because it is being killed; its exit will still
 * be reported. */
static bool let_go(struct target *t, struct thread *th)
{
	thread_restart(t, th);
	thread_spare_wait(t, th);
	/* A job control stop is managed by the kernel and persists (PTRACE_SEIZE keeps group
	 * stops). */
	return !ptrace(PTRACE_DETACH, th->tid, 0, 0);
}

/* Return: whether @t->late.at[i] must still be waited for. */
static bool is_late(struct target *t, size_t i)
{
	struct thread th = {.tid = t->late.at[i], .interrupt_sent = true};

	if (!thread_collect(t, &th))
		return true;
	t->late.at[i] = th.tid;
	/* Threads that it has made in the meantime stop at their first instruction. */
	vec_for_each (&t->threads, it)
		thread_late(t, *it);
	threads_forget(t);
	return th.state == THREAD_RUNNING || (th.state != THREAD_GONE && !let_go(t, &th));
}

uint32_t target_release_late(struct target *t)
{
	for (size_t i = 0; i < t->late.n && !t->threads.n;) {
		if (is_late(t, i))
			i++;
		else
			t->late.at[i] = t->late.at[--t->late.n];
	}
	return (uint32_t)t->late.n;
}

void target_release_others(struct target *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->threads.n; i++) {
		struct thread *th = t->threads.at[i];

		if (th->keep) {
			t->threads.at[kept++] = th;
			continue;
		}
		if (th->state == THREAD_IN_VFORK || !let_go(t, th))
			thread_late(t, th);
		free(th);
		fault_point("let-go");
	}
	t->threads.n = kept;
	t->some_only = true;
	t->last_stop_ns = mono_ns() - t->stopped_at_ns;
}

void target_include_others(struct target *t)
{
	t->some_only = false;
}

void target_release(struct target *t)
{
	struct deadline deadline = deadline_in_ms(1000);
	bool were_stopped = t->threads.n && t->threads.at[0]->state != THREAD_RUNNING;

	/* By index: stopping a thread can add a new one. */
	for (size_t i = 0; i < t->threads.n; i++) {
		struct thread *th = t->threads.at[i];

		if (th->state == THREAD_RUNNING)
			stop_for_detach(t, th, &deadline);
		if (th->state == THREAD_GONE)
			continue;
		if (th->state == THREAD_RUNNING || th->state == THREAD_IN_VFORK || !let_go(t, th))
			thread_late(t, th);
		th->state = THREAD_GONE;
		fault_point("let-go");
	}
	if (were_stopped)
		t->last_stop_ns = mono_ns() - t->stopped_at_ns;
	if (t->threads.n)
		steps_add(t->steps, "released %zu thread%s%s", t->threads.n, plural(t->threads.n),
			  t->late.n ? "; some are still traced until they stop" : "");
	threads_forget(t);
	t->mem.tid = 0;
	t->some_only = false;
	deadline = deadline_in_ms(LATE_MS);
	while (target_release_late(t) && !deadline_passed(&deadline))
		usleep(100);
	steps_flush(t->steps);
}

void target_close(struct target *t)
{
	target_release(t);
	target_maps_changed(t);
	vec_free(&t->late);
	mem_close(&t->mem);
	steps_free(t->steps);
	t->steps = NULL;
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}
