/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between cmd/leaks.c, cmd/heap.c and what they print with. */
#ifndef CMD_LEAKS_CMD_H
#define CMD_LEAKS_CMD_H

#include "cmd/cmd.h"
#include "cmd/leaks_join.h"
#include "leaks/analysis.h"

/* Exit statuses of memprof leaks; doc/exit-status.md. */
enum leaks_exit {
	LEAKS_NONE = 0,	 /* none above the budget */
	LEAKS_FOUND = 1, /* or failed, with a message */
	LEAKS_USAGE = 2,
	LEAKS_NOT_INSPECTABLE = 3, /* no such process, no permission, no known allocator ... */
	LEAKS_PAUSE = 4, /* the pause would exceed --max-pause; it was left alone, or let go */
	LEAKS_APPROXIMATE = 5, /* and --require-exact was given */
	LEAKS_GONE = 6,	       /* the process ended meanwhile */
	LEAKS_OVERRUN = 7,     /* the pause was longer than --max-pause */
};

/* Leaks that count: neither suppressed nor in the baseline. */
struct leaks_sum {
	uint64_t count, bytes; /* with what they hold */
	uint64_t known, suppressed;
};

void leaks_print_plan(const struct target *t, const struct snapshot_plan *plan);
/* A pause as measured, without the end of its line.  @wait_ns: of it for a processor; 0: not known.
 */
void leaks_print_pause(uint64_t ns, uint64_t wait_ns);
void leaks_print_heaps(const struct census *c);
/* The pause was longer than --max-pause, and what would do next time. */
void leaks_print_overrun(const struct analysis *a, const struct target *t);
/* @j: with what it joined, or why not. */
void leaks_print_report(const struct analysis *a, const struct leaks_sum *sum, struct leak_join *j);
void leaks_print_why(const struct why *w, struct leak_join *j);

#endif
