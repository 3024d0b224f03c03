/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Converts the target's ticks (TSC on x86-64) to nanoseconds since the start of the recording.  Later ticks
 * never give an earlier time, although the rate becomes better known while the recording is made. */
#ifndef RECORD_CLOCK_H
#define RECORD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
	uint64_t ticks0, ns0; /* the start */
	double ns_per_tick;   /* from there to the newest calibration point */
	double rate_guess;    /* ticks per second */
	/* The line by which ticks are converted: it begins where the one before ended. */
	uint64_t from_ticks, from_ns;
	double slope;
};

/* Return: the processor's tick count now (on MIPS64: CLOCK_MONOTONIC in ns). */
uint64_t clock_ticks(void);
/* Return: false if user space cannot read the counter (ARM processors without the generic timer
 * raise SIGILL). */
bool clock_readable(void);
/* Calibrates over 20 ms. */
void clock_start(struct clock *c);
/*
 * Takes a new calibration point.  To be called about once a second.
 * @until: ticks up to which all have been converted; only later ones are converted from now on
 */
void clock_adjust(struct clock *c, uint64_t until);
/* As clock_adjust(), with a calibration point that is given: @ns of CLOCK_MONOTONIC at @ticks. */
void clock_correct(struct clock *c, uint64_t until, uint64_t ticks, uint64_t ns);
/* Return: nanoseconds since the start; 0 for times before it. */
uint64_t clock_ns(const struct clock *c, uint64_t ticks);
/* Return: the ticks at @ns of CLOCK_MONOTONIC, by the line that is used now. */
uint64_t clock_ticks_at(const struct clock *c, uint64_t ns);

#endif
