/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/clock.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/deadline.h"

#define CALIBRATE_NS 20000000
#define READINGS     8
#define SECOND_NS    1e9

uint64_t clock_ticks(void)
{
#if defined(__mips64)
	return mono_ns();
#elif defined(__x86_64__)
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#elif defined(__arm__)
	uint64_t now;

	__asm__ volatile("isb\n\tmrrc p15, 1, %Q0, %R0, c14" : "=r"(now) : : "memory");
	return now;
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now) : : "memory");
	return now;
#else
#error "a tick source for this architecture belongs here"
#endif
}

bool clock_readable(void)
{
#if defined(__arm__)
	int status;
	pid_t child = fork();

	if (!child) {
		clock_ticks();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status;
#else
	return true;
#endif
}

/* Reads both clocks at about one moment.  The closest of several readings is used, since the thread
 * can be preempted between the two clocks. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
	uint64_t closest = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = clock_ticks(), at = mono_ns(), taken = clock_ticks() - before;

		if (taken < closest) {
			closest = taken;
			*ns = at;
			*ticks = before + taken / 2;
		}
	}
}

/*
 * Draws the line through the conversion of @until that meets the measured time in a second: @ns after the
 * start at @ticks, and so on at the measured rate.  An error of the first calibration, which is a short one,
 * is thus corrected gradually: a jump would let an event be earlier than the one before it.
 */
static void aim(struct clock *c, uint64_t until, uint64_t ticks, uint64_t ns)
{
	uint64_t from_ns = clock_ns(c, until);

	c->from_ticks = until;
	c->from_ns = from_ns;
	c->slope = ((double)(int64_t)(ns - from_ns) + SECOND_NS) /
		   ((double)(ticks - until) + c->rate_guess);
	if (c->slope < c->ns_per_tick / 2)
		c->slope = c->ns_per_tick / 2;
}

void clock_correct(struct clock *c, uint64_t until, uint64_t ticks, uint64_t ns)
{
	if (ticks <= c->ticks0)
		return;
	c->ns_per_tick = (double)(ns - c->ns0) / (double)(ticks - c->ticks0);
	c->rate_guess = SECOND_NS / c->ns_per_tick;
	if (until < c->from_ticks)
		until = c->from_ticks;
	aim(c, until < ticks ? until : ticks, ticks, ns - c->ns0);
}

void clock_adjust(struct clock *c, uint64_t until)
{
	uint64_t ticks, ns;

	read_both(&ticks, &ns);
	clock_correct(c, until, ticks, ns);
}

void clock_start(struct clock *c)
{
	struct timespec pause = {0, CALIBRATE_NS};

	read_both(&c->ticks0, &c->ns0);
	c->from_ticks = c->ticks0;
	c->from_ns = 0;
	nanosleep(&pause, NULL);
	clock_adjust(c, c->ticks0);
}

uint64_t clock_ticks_at(const struct clock *c, uint64_t ns)
{
	int64_t since = (int64_t)(ns - c->ns0 - c->from_ns);

	return ns <= c->ns0 ? c->ticks0
			    : c->from_ticks + (uint64_t)(int64_t)((double)since / c->slope);
}

uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	int64_t ns =
	    (int64_t)c->from_ns + (int64_t)((double)(int64_t)(ticks - c->from_ticks) * c->slope);

	return ticks <= c->ticks0 || ns < 0 ? 0 : (uint64_t)ns;
}
