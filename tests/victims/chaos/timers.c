/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Timers that send signals: the number of expirations follows from the time that has passed. */
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
#define USED	  (SIGRTMIN + 7)
#define USED_MS	  20
#define LONG_NS	  20000000000ll

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct ticks {
	struct actor *a;
	int64_t before, after; /* times before and after the timer was set; after: 0 until then */
	int64_t idle;	       /* a time at which no handler was running */
	long sum;
};

static _Thread_local struct ticks *volatile ticking;
static volatile long alarms, of_process;

/* Checks that each expiration so far is counted once. */
static void on_timer(int sig, siginfo_t *info, void *context)
{
	struct ticks *t = ticking;
	long most, least = 0;

	(void)sig;
	(void)context;
	if (t->after && t->idle > t->after)
		least = (long)((t->idle - t->after) / PERIOD_NS) - 1;
	most = (long)((now_ns() - t->before) / PERIOD_NS);
	t->sum += 1 + info->si_overrun;
	must(t->a, info->si_code == SI_TIMER && info->si_value.sival_ptr == t,
	     "timer: expected SI_TIMER and its value, got code %d", info->si_code);
	must(t->a, t->sum >= least && t->sum <= most,
	     "timer: expected %ld to %ld expirations, got %ld", least, most, t->sum);
	t->idle = now_ns();
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
	t.before = now_ns();
	if (timer_settime(timer, 0, &it, NULL))
		give_up("timer_settime");
	t.after = now_ns();
	/* Handlers end the sleep repeatedly; it continues with the time that was left. */
	do {
		sum = t.sum;
		error = clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest);
		must(a, !error || error == EINTR, "clock_nanosleep: expected EINTR, got %s",
		     strerror(error));
		must(a, error != EINTR || t.sum > sum, "clock_nanosleep: EINTR without a handler");
		breaks++;
	} while (error && breaks < 10000);
	came_out(a, "clock_nanosleep, in parts", 0, 0, 0, t.before, 60);
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
	while (alarms < 10 && now_ns() - since < LONG_NS) {
		pause_us(4000);
		/* The handler can run again after this. */
		long seen = alarms;

		most = (long)((now_ns() - since) / 5000000);
		if (!must(a, seen <= most + 1, "ITIMER_REAL: expected at most %ld, got %ld", most,
			  seen))
			break;
	}
	must(a, alarms >= 10, "ITIMER_REAL: expected signals for 20 s, got %ld", alarms);
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
	/* The kernel rounds the value. */
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
	(void)context;
	of_process += 1 + info->si_overrun;
}

static int64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* A timer of the process's CPU time must send signals, but not too many. */
static void cpu_timer_round(struct actor *a)
{
	struct itimerspec it = {.it_value = of_ms(USED_MS), .it_interval = of_ms(USED_MS)};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = USED};
	int64_t used = used_ns(), begun = now_ns();
	timer_t timer;
	long most;

	of_process = 0;
	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &ev, &timer) ||
	    timer_settime(timer, 0, &it, NULL))
		give_up("timer_create");
	unblock(USED);
	while (of_process < 3 && now_ns() - begun < LONG_NS) {
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	timer_delete(timer);
	block(USED);
	most = (long)((used_ns() - used) / (USED_MS * 1000000));
	must(a, of_process >= 3 && of_process <= most,
	     "processor time: expected 3 to %ld expirations, got %ld", most, of_process);
}

void timers_prepare(void)
{
	handle(TIMER, on_timer, 0);
	handle(SIGALRM, on_alarm, 0);
	handle(USED, on_used, SA_RESTART);
}

struct actor timers[] = {
    {.name = "posix-timers",
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
     .round = cpu_timer_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "timer_create(CLOCK_PROCESS_CPUTIME_ID): as many expirations as time was used"},
    {0}};
