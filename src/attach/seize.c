/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/seize.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <unistd.h>
#include "attach/procfs.h"

#define PATIENCE_US 2000 /* other threads of the target can be stopped during this time */

/* Per thread: only the thread that seizes jumps, not another one that gets the signal. */
static _Thread_local sigjmp_buf give_up;
static _Thread_local volatile sig_atomic_t seizing;

/*
 * The wait is ended by a jump, because after a handler that returns the kernel restarts ptrace()
 * (-ERESTARTNOINTR).  The jump abandons either a wait in which nothing was done yet, or the few
 * instructions around a system call that has ended.
 */
static void on_alarm(int sig)
{
	(void)sig;
	if (seizing)
		siglongjmp(give_up, 1);
}

static int hear_alarm(void)
{
	/* SA_NODEFER: the jump leaves the signal mask as it is. */
	struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER | SA_RESTART};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	return sigaction(SIGALRM, &act, NULL) || sigprocmask(SIG_UNBLOCK, &set, NULL) ? -errno : 0;
}

static void set_alarm(long us)
{
	const struct itimerval in = {.it_value = {.tv_usec = us}};

	setitimer(ITIMER_REAL, &in, NULL);
}

static bool is_ours(pid_t pid, pid_t tid)
{
	struct proc_status st;

	return !proc_status_read(pid, tid, &st) && st.tracer == getpid();
}

int seize_thread(pid_t pid, pid_t tid, long options)
{
	int ret = hear_alarm();

	if (ret)
		return ret;
	if (sigsetjmp(give_up, 0)) {
		seizing = 0;
		/* The signal can have come after the call succeeded. */
		return is_ours(pid, tid) ? 0 : -EINTR;
	}
	seizing = 1;
	set_alarm(PATIENCE_US);
	ret = ptrace(PTRACE_SEIZE, tid, 0, options) ? -errno : 0;
	seizing = 0;
	set_alarm(0);
	return ret;
}
