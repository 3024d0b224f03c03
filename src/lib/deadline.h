/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Monotonic deadlines, which every function that waits takes as a parameter. */
#ifndef LIB_DEADLINE_H
#define LIB_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Return: CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
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

#endif
