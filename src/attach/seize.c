/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/seize.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>
#include "attach/procfs.h"

#define PATIENCE_NS 2000000 /* other threads of the target can be stopped during this time */

/* Per thread: only the thread that seizes jumps, not another one that gets the signal. */
static _Thread_local sigjmp_buf give_up;
static _Thread_local volatile sig_atomic_t seizing;

/*
 * The wait is ended by a jump, because after a handler that returns the kernel restarts ptrace()
 * (-ERESTARTNOINTR).  The jump abandons either a wait in which nothing was done yet, or the few
 * instructions around a system call that has ended.
 */
static void on_time(int sig)
{
	(void)sig;
	if (seizing)
		siglongjmp(give_up, 1);
}

/* Prepares the timer's signal, which must not be SIGALRM: that is sent to the process, so that another
 * thread could receive it. */
static int prepare(timer_t *timer)
{
	/* SA_NODEFER: the jump leaves the signal mask as it is. */
	struct sigaction act = {.sa_handler = on_time, .sa_flags = SA_NODEFER | SA_RESTART};
	struct sigevent to_this_thread = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	sigset_t set;

	to_this_thread._sigev_un._tid = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigaction(SIGRTMIN, &act, NULL) || sigprocmask(SIG_UNBLOCK, &set, NULL))
		return -errno;
	return timer_create(CLOCK_MONOTONIC, &to_this_thread, timer) ? -ENOMEM : 0;
}

static bool is_ours(pid_t pid, pid_t tid)
{
	struct proc_status st;

	return !proc_status_read(pid, tid, &st) && st.tracer == getpid();
}

int seize_thread(pid_t pid, pid_t tid, long options)
{
	const struct itimerspec patience = {.it_value = {.tv_nsec = PATIENCE_NS}};
	timer_t timer = NULL;
	int ret = prepare(&timer);

	if (ret)
		return ret;
	if (sigsetjmp(give_up, 0)) {
		seizing = 0;
		timer_delete(timer);
		/* The signal can have come after the call succeeded. */
		return is_ours(pid, tid) ? 0 : -EINTR;
	}
	seizing = 1;
	timer_settime(timer, 0, &patience, NULL);
	ret = ptrace(PTRACE_SEIZE, tid, 0, options) ? -errno : 0;
	seizing = 0;
	timer_delete(timer);
	return ret;
}
