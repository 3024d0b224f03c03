/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "snapshot/hand.h"

static struct {
	pthread_t thread;
	bool waits;
	int status, overdue;
	sigset_t before;
} own;

static sigset_t ending(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGALRM};
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

	while (sigwait(&set, &sig))
		;
	/* From here on this thread ends memprof.  A concurrent interrupt_end() waits in
	 * pthread_join(). */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	hand_end();
	if (sig == SIGALRM)
		fputs("memprof: --max-pause has passed, so the process was released; use a longer "
		      "--max-pause, or another mode than --in-place\n",
		      stderr);
	else
		fputs("memprof: interrupted; the process is unchanged\n", stderr);
	_exit(sig == SIGALRM ? own.overdue : own.status);
	return unused;
}

void interrupt_begin(int status, int overdue)
{
	sigset_t set = ending();

	own.status = status;
	own.overdue = overdue;
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
	pthread_cancel(own.thread);
	pthread_join(own.thread, NULL);
	own.waits = false;
	/* Drops a SIGALRM that arrived as the pause ended.  If the pause was too long, the report
	 * says so. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigtimedwait(&alarm, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &own.before, NULL);
}
