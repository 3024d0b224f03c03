/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Converts the target's ticks (TSC on x86-64) to nanoseconds since the start of the recording. */
#ifndef RECORD_CLOCK_H
#define RECORD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
	uint64_t ticks0, ns0; /* the start */
	uint64_t ticks1, ns1; /* newest calibration point */
	double ns_per_tick;
	double rate_guess; /* ticks per second */
};

/* Return: the processor's tick count now (on MIPS64: CLOCK_MONOTONIC in ns). */
uint64_t clock_ticks(void);
/* Return: false if user space cannot read the counter (ARM processors without the generic timer
 * raise SIGILL). */
bool clock_readable(void);
/* Calibrates over 20 ms. */
void clock_start(struct clock *c);
/* Takes a new calibration point.  To be called about once a second. */
void clock_adjust(struct clock *c);
/* Return: nanoseconds since the start; 0 for times before it. */
uint64_t clock_ns(const struct clock *c, uint64_t ticks);

#endif
