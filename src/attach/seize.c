/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/seize.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

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

/*
 * The timer's signal.  It must not be SIGALRM, which is sent to the process, so that another thread could receive
 * it; and must not be one that the program has a use for.  It is handled while threads wait.
 */
static struct {
	pthread_mutex_t lock;
	int number, users;
	struct sigaction before;
} patience_signal = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Return: 0, or -EAGAIN: the program has a use for all real-time signals. */
static int take_signal(void)
{
	/* SA_NODEFER: the jump leaves the signal mask as it is. */
	const struct sigaction act = {.sa_handler = on_time, .sa_flags = SA_NODEFER | SA_RESTART};

	for (int n = SIGRTMAX; n >= SIGRTMIN; n--) {
		if (sigaction(n, NULL, &patience_signal.before) ||
		    patience_signal.before.sa_handler != SIG_DFL)
			continue;
		patience_signal.number = n;
		return sigaction(n, &act, NULL) ? -errno : 0;
	}
	return -EAGAIN;
}

static int begin_to_wait(void)
{
	int ret;

	pthread_mutex_lock(&patience_signal.lock);
	ret = patience_signal.users ? 0 : take_signal();
	patience_signal.users += !ret;
	pthread_mutex_unlock(&patience_signal.lock);
	return ret;
}

static void end_to_wait(void)
{
	struct sigaction now;

	pthread_mutex_lock(&patience_signal.lock);
	/* The program can have begun to use the signal meanwhile. */
	if (!--patience_signal.users && !sigaction(patience_signal.number, NULL, &now) &&
	    now.sa_handler == on_time)
		sigaction(patience_signal.number, &patience_signal.before, NULL);
	pthread_mutex_unlock(&patience_signal.lock);
}

static int make_timer(timer_t *timer)
{
	struct sigevent to_this_thread = {.sigev_notify = SIGEV_THREAD_ID,
					  .sigev_signo = patience_signal.number};

	to_this_thread._sigev_un._tid = gettid();
	return timer_create(CLOCK_MONOTONIC, &to_this_thread, timer) ? -ENOMEM : 0;
}

static bool is_ours(pid_t pid, pid_t tid)
{
	struct proc_status st;

	return !proc_status_read(pid, tid, &st) && st.tracer == gettid();
}

/* Return: as seize_thread(). */
static int seize_in_time(pid_t pid, pid_t tid, long options, timer_t timer)
{
	const struct itimerspec patience = {.it_value = {.tv_nsec = PATIENCE_NS}};
	int ret;

	if (sigsetjmp(give_up, 0)) {
		seizing = 0;
		/* The signal can have come after the call succeeded. */
		return is_ours(pid, tid) ? 0 : -EINTR;
	}
	seizing = 1;
	timer_settime(timer, 0, &patience, NULL);
	ret = ptrace(PTRACE_SEIZE, tid, 0, options) ? -errno : 0;
	seizing = 0;
	return ret;
}

int seize_thread(pid_t pid, pid_t tid, long options)
{
	timer_t timer = NULL;
	sigset_t set, before;
	int ret = begin_to_wait();

	if (ret)
		return ret;
	sigemptyset(&set);
	sigaddset(&set, patience_signal.number);
	pthread_sigmask(SIG_UNBLOCK, &set, &before);
	ret = make_timer(&timer);
	if (!ret) {
		ret = seize_in_time(pid, tid, options, timer);
		timer_delete(timer);
	}
	/* A signal that was sent before the timer was deleted has been handled by now. */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	end_to_wait();
	return ret;
}
