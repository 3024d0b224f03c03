/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/clock.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/deadline.h"

#define CALIBRATE_NS 20000000
#define READINGS     8

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

void clock_adjust(struct clock *c)
{
	read_both(&c->ticks1, &c->ns1);
	if (c->ticks1 > c->ticks0) {
		c->ns_per_tick = (double)(c->ns1 - c->ns0) / (double)(c->ticks1 - c->ticks0);
		c->rate_guess = 1e9 / c->ns_per_tick;
	}
}

void clock_start(struct clock *c)
{
	struct timespec pause = {0, CALIBRATE_NS};

	read_both(&c->ticks0, &c->ns0);
	nanosleep(&pause, NULL);
	clock_adjust(c);
}

uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	return ticks <= c->ticks0 ? 0 : (uint64_t)((double)(ticks - c->ticks0) * c->ns_per_tick);
}
