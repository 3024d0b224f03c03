/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Timers that send signals: how many expirations there were is known from the time that has passed.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include "chaos.h"

#define TIMER	  (SIGRTMIN + 6)
#define PERIOD_MS 2
#define PERIOD_NS (PERIOD_MS * 1000000ll)
#define CLOCK_NS  1000000ll /* processors' clocks and the timer's agree to that */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct ticks {
	struct actor *a;
	int64_t since,
	    known_ns; /* when the timer began; a time at which the handler was not at work */
	long sum;
};

static _Thread_local struct ticks *volatile ticking;
static volatile long alarms, of_process;

/* What has expired by now, and not before: each expiration is counted once. */
static void on_timer(int sig, siginfo_t *info, void *context)
{
	struct ticks *t = ticking;
	int64_t now = now_ns() - t->since;

	(void)sig;
	(void)context;
	t->sum += 1 + info->si_overrun;
	must(t->a, info->si_code == SI_TIMER && info->si_value.sival_ptr == t,
	     "timer: expected SI_TIMER and its value, got code %d", info->si_code);
	must(t->a, t->sum * PERIOD_NS <= now + CLOCK_NS,
	     "timer: expected at most %ld expirations, got %ld", (long)(now / PERIOD_NS), t->sum);
	must(t->a, (t->sum + 1) * PERIOD_NS + CLOCK_NS >= t->known_ns,
	     "timer: expected at least %ld expirations, got %ld",
	     (long)(t->known_ns / PERIOD_NS) - 1, t->sum);
	t->known_ns = now_ns() - t->since;
}

static void posix_timers_round(struct actor *a)
{
	struct itimerspec it = {.it_value = of_ms(PERIOD_MS), .it_interval = of_ms(PERIOD_MS)};
	struct ticks t = {.a = a};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TIMER};
	struct timespec rest = of_ms(60);
	timer_t timer;
	int error, breaks = 0;
	long sum;

	ev.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	ev.sigev_value.sival_ptr = &t;
	ticking = &t;
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer))
		give_up("timer_create");
	unblock(TIMER);
	t.since = now_ns();
	if (timer_settime(timer, 0, &it, NULL))
		give_up("timer_settime");
	/* A sleep that handlers end again and again goes on with what was left. */
	do {
		sum = t.sum;
		error = clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest);
		must(a, !error || error == EINTR, "clock_nanosleep: expected EINTR, got %s",
		     strerror(error));
		must(a, error != EINTR || t.sum > sum, "clock_nanosleep: EINTR without a handler");
		breaks++;
	} while (error && breaks < 10000);
	must(a, now_ns() - t.since >= 60 * 1000000ll,
	     "clock_nanosleep: expected 60 ms in all, took %.3f", 1e-6 * (now_ns() - t.since));
	timer_delete(timer);
	block(TIMER);
	must(a, t.sum > 0, "timer: expected expirations, there was none");
}

static void on_alarm(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	alarms++;
}

static void real_itimer_round(struct actor *a)
{
	struct itimerval it = {{0, 5000}, {0, 5000}}, off = {0}, left;
	int64_t since;
	long most;

	alarms = 0;
	unblock(SIGALRM);
	since = now_ns();
	setitimer(ITIMER_REAL, &it, NULL);
	while (alarms < 10) {
		pause_us(4000);
		/* The handler may run after this was read. */
		long seen = alarms;

		most = (long)((now_ns() - since) / 5000000);
		if (!must(a, seen <= most + 1, "ITIMER_REAL: expected at most %ld, got %ld", most,
			  seen))
			break;
	}
	getitimer(ITIMER_REAL, &left);
	must(a, left.it_interval.tv_usec / 1000 == 5,
	     "getitimer: expected an interval of 5 ms, got %ld us", (long)left.it_interval.tv_usec);
	setitimer(ITIMER_REAL, &off, NULL);
	block(SIGALRM);
}

static void alarm_round(struct actor *a)
{
	int64_t since = now_ns();
	unsigned left;
	sigset_t mask;

	alarms = 0;
	alarm(100);
	left = alarm(1);
	/* Rounded by the kernel. */
	must(a, left >= 98 - (now_ns() - since) / 1000000000 && left <= 100,
	     "alarm: expected 100 s to be left, got %u", left);
	since = now_ns();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	sigdelset(&mask, SIGALRM);
	came_out(a, "alarm", sigsuspend(&mask), -1, EINTR, since, 990);
	must(a, alarms == 1, "alarm: expected one SIGALRM, got %ld", alarms);
}

static void on_used(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	of_process++;
}

static int64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* By the processor time of all threads: the signal comes, and not too often. */
static void process_itimer_round(struct actor *a)
{
	struct itimerval it = {{0, 20000}, {0, 20000}}, off = {0};
	int64_t since = used_ns(), begun = now_ns();

	of_process = 0;
	unblock(SIGPROF);
	setitimer(ITIMER_PROF, &it, NULL);
	while (of_process < 3 && now_ns() - begun < 20000000000ll) {
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	setitimer(ITIMER_PROF, &off, NULL);
	block(SIGPROF);
	must(a, of_process >= 3, "ITIMER_PROF: expected 3 signals within 20 s, got %ld",
	     of_process);
	must(a, of_process * 20000000 <= used_ns() - since + 20000000,
	     "ITIMER_PROF: expected at most %ld signals, got %ld",
	     (long)((used_ns() - since) / 20000000), of_process);
}

void timers_prepare(void)
{
	handle(TIMER, on_timer, 0);
	handle(SIGALRM, on_alarm, 0);
	handle(SIGPROF, on_used, SA_RESTART);
}

struct actor timers[] = {{.name = "posix-timers",
			  .round = posix_timers_round,
			  .guaranteed = "timer_create(): signals and overruns count every "
					"expiration once; a sleep that handlers end goes "
					"on with what was left"},
			 {.name = "itimers",
			  .round = real_itimer_round,
			  .alone = true,
			  .guaranteed = "setitimer(ITIMER_REAL): no signal too many"},
			 {.name = "alarm",
			  .round = alarm_round,
			  .alone = true,
			  .same_thread = true,
			  .guaranteed = "one SIGALRM, never early"},
			 {.name = "cpu-timer",
			  .round = process_itimer_round,
			  .alone = true,
			  .same_thread = true,
			  .guaranteed = "setitimer(ITIMER_PROF): no signal too many"},
			 {0}};
