/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "snapshot/hand.h"

/* Ends the thread.  pthread_cancel() would need libgcc_s.so.1, which small containers do not have. */
#define LEAVE SIGUSR2

static struct {
	pthread_t thread;
	bool waits, leave;
	int status, overdue;
	sigset_t before;
} own;

static sigset_t ending(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGALRM, LEAVE};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	return set;
}

static void *wait_for_signal(void *unused)
{
	sigset_t set = ending();
	int sig;

	do {
		if (__atomic_load_n(&own.leave, __ATOMIC_ACQUIRE))
			return unused;
	} while (sigwait(&set, &sig) || sig == LEAVE);
	/* From here on this thread ends memprof.  A concurrent interrupt_end() waits in
	 * pthread_join(). */
	hand_end();
	if (sig == SIGALRM)
		fputs("memprof: --max-pause has passed, so the process was released; use a longer "
		      "--max-pause, or another mode than --in-place\n",
		      stderr);
	else
		fputs("memprof: interrupted; the process is unchanged\n", stderr);
	_exit(sig == SIGALRM ? own.overdue : own.status);
}

void interrupt_begin(int status, int overdue)
{
	sigset_t set = ending();

	own.status = status;
	own.overdue = overdue;
	own.leave = false;
	pthread_sigmask(SIG_BLOCK, &set, &own.before);
	/* memprof must not be killed either when the reader of its output goes away. */
	signal(SIGPIPE, SIG_IGN);
	own.waits = !pthread_create(&own.thread, NULL, wait_for_signal, NULL);
}

void interrupt_end(void)
{
	const struct timespec at_once = {0};
	sigset_t alarm;

	if (!own.waits)
		return;
	__atomic_store_n(&own.leave, true, __ATOMIC_RELEASE);
	pthread_kill(own.thread, LEAVE);
	pthread_join(own.thread, NULL);
	own.waits = false;
	/* Drops a SIGALRM that arrived as the pause ended.  If the pause was too long, the report
	 * says so. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigtimedwait(&alarm, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &own.before, NULL);
}
