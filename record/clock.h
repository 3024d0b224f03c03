/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The target's ticks (TSC on x86-64) as nanoseconds since the start of the recording. */
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

uint64_t clock_ticks(void);
/* Return: false where programs may not read the counter (ARM processors without the generic timer):
 * whoever does gets SIGILL. */
bool clock_readable(void);
/* Calibrates over 20 ms. */
void clock_start(struct clock *c);
/* A newer calibration point; call about once a second. */
void clock_adjust(struct clock *c);
/* Times before the start count as 0. */
uint64_t clock_ns(const struct clock *c, uint64_t ticks);

#endif
