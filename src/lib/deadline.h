/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clocks, and monotonic deadlines, which every function that waits takes as a parameter. */
#ifndef LIB_DEADLINE_H
#define LIB_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Return: the time of @clock in nanoseconds. */
static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Return: CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

struct deadline {
	uint64_t at_ns;
};

/* Return: a deadline @ms milliseconds from now. */
static inline struct deadline deadline_in_ms(uint64_t ms)
{
	return (struct deadline){mono_ns() + ms * 1000000u};
}

static inline bool deadline_passed(const struct deadline *d)
{
	return mono_ns() >= d->at_ns;
}

/* Sleeps between two looks at what another process must do: an eighth of the time since @since_ns, but
 * 50 us to 5 ms.  A caller with a raised priority that looked every 50 us would keep a slow processor
 * from the one that it waits for. */
static inline void wait_longer_each_time(uint64_t since_ns)
{
	uint64_t ns = (mono_ns() - since_ns) / 8;
	struct timespec ts = {.tv_nsec = (long)(ns < 50000 ? 50000 : ns > 5000000 ? 5000000 : ns)};

	nanosleep(&ts, NULL);
}

#endif
