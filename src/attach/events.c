/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wait statuses of traced threads. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/restart.h"
#include "attach/threads.h"
#include "lib/fault.h"

#define CHILD_LOOKS 20 /* 100 us apart */

/*
 * Releases a child process that the kernel seized because it was forked while its parent is traced.
 * It was born either before any byte was patched or with the complete patch.  It can be released
 * after its first stop, which takes a while on a busy machine.
 */
static void let_child_go(struct target *t, pid_t child)
{
	int status;

	for (int i = 0; i < CHILD_LOOKS && !fault_fail("child-born"); i++) {
		pid_t got = waitpid(child, &status, __WALL | WNOHANG);

		if (got == child && WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, child, 0, 0);
		if (got)
			return;
		usleep(100);
	}
	(void)vec_push(&t->late, child);
}

void thread_late(struct target *t, struct thread *th)
{
	th->state = THREAD_GONE;
	(void)vec_push(&t->late, th->tid);
}

/*
 * Continues the thread, to a PTRACE_INTERRUPT stop if one was requested.  Any trap clears a pending
 * interrupt in the kernel (ptrace_stop()), so it is requested again; the kernel handles it before
 * the next signal.
 */
static void go_on(struct target *t, struct thread *th, int signal)
{
	if ((th->interrupt_sent && ptrace(PTRACE_INTERRUPT, th->tid, 0, 0)) ||
	    ptrace(PTRACE_CONT, th->tid, 0, signal)) {
		if (errno == ESRCH)
			thread_late(t, th);
	}
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* A clone, fork or vfork happened: keeps a new thread, releases a new process. */
static void take_child(struct target *t, struct thread *parent)
{
	unsigned long message = 0;
	struct proc_status st;
	pid_t child;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, 0, &message) || !message)
		return;
	child = (pid_t)message;
	if (proc_status_read(child, 0, &st) || st.tgid != t->pid)
		let_child_go(t, child);
	else if (!thread_find(t, child))
		thread_add(t, child);
}

void thread_digest(struct target *t, struct thread *th, int status)
{
	int sig = WSTOPSIG(status);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		th->state = THREAD_GONE;
		if (th->tid == t->pid)
			t->exited = true;
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	switch (status >> 16) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		take_child(t, th);
		go_on(t, th, 0);
		return;
	case PTRACE_EVENT_EXEC:
		t->execed = true;
		go_on(t, th, 0);
		return;
	case PTRACE_EVENT_EXIT:
		/* It runs no more user code; it is waited for until it is reaped. */
		ptrace(PTRACE_CONT, th->tid, 0, 0);
		thread_late(t, th);
		return;
	case PTRACE_EVENT_STOP:
		th->state = is_stop_signal(sig) ? THREAD_GROUP_STOPPED : THREAD_STOPPED;
		/* At once, so that the thread is in a correct state if memprof is killed now.
		 * Where an early restart could deprive a signal of its EINTR, it is done later. */
		if (!t->arch->syscall.before && !th->lent)
			thread_restart(t, th);
		return;
	}
	go_on(t, th, sig == (SIGTRAP | 0x80) ? 0 : sig);
}

/* waitpid() does not know the thread any more.  A thread that calls execve() takes over the number
 * of the process and stays seized. */
static void lose(struct target *t, struct thread *th)
{
	struct proc_status st;

	if (th->tid == t->pid || thread_find(t, t->pid) || proc_status_read(t->pid, 0, &st) ||
	    st.state == 'Z' || st.tracer != gettid())
		th->state = THREAD_GONE;
	else
		th->tid = t->pid;
}

bool thread_collect(struct target *t, struct thread *th)
{
	int status;
	pid_t got = waitpid(th->tid, &status, __WALL | WNOHANG);

	if (got == th->tid)
		thread_digest(t, th, status);
	else if (got < 0)
		lose(t, th);
	return got != 0;
}

bool threads_collect(struct target *t)
{
	bool any = false;

	/* By index: thread_digest() can add threads. */
	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state == THREAD_RUNNING)
			any |= thread_collect(t, t->threads.at[i]);
	}
	return any;
}

static bool is_other_process(const struct target *t, pid_t tid)
{
	struct proc_status st;

	return !proc_status_read(tid, 0, &st) && st.tgid != t->pid;
}

bool threads_collect_late(struct target *t)
{
	bool any = false;

	for (size_t i = 0; i < t->late.n;) {
		pid_t tid = t->late.at[i];
		struct thread *th;
		int status;
		pid_t got = thread_find(t, tid) || is_other_process(t, tid)
				? 0
				: waitpid(tid, &status, __WALL | WNOHANG);

		if (!got) {
			i++;
			continue;
		}
		t->late.at[i] = t->late.at[--t->late.n];
		th = got == tid ? thread_add(t, tid) : NULL;
		if (th)
			thread_digest(t, th, status);
		any = true;
	}
	return any;
}

bool threads_catch_up(struct target *t)
{
	bool any = threads_collect_late(t);

	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state != THREAD_GONE)
			any |= thread_collect(t, t->threads.at[i]);
	}
	return any;
}

bool thread_waits_in_vfork(const struct target *t, const struct thread *th)
{
	char path[64], wchan[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", t->pid, th->tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(wchan, sizeof(wchan), f))
		wchan[0] = 0;
	fclose(f);
	/* The kernel function is wait_for_vfork_done() or, if that was inlined, its caller.  Any
	 * other wait in that caller has its own function name. */
	return strstr(wchan, "vfork") || !strcmp(wchan, "kernel_clone") ||
	       !strcmp(wchan, "_do_fork");
}

bool target_in_vfork(const struct target *t)
{
	vec_for_each (&t->threads, it) {
		if ((*it)->state != THREAD_IN_VFORK && (*it)->state != THREAD_RUNNING)
			return false;
	}
	return t->threads.n > 0;
}
