/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by cmd/heap/leaks.c, cmd/heap/heap.c and their printing code. */
#ifndef CMD_HEAP_LEAKS_CMD_H
#define CMD_HEAP_LEAKS_CMD_H

#include "cmd/cmd.h"
#include "join/leaks_join.h"
#include "leaks/analysis.h"

/* Exit statuses of memprof leaks; see doc/exit-status.md. */
enum leaks_exit {
	LEAKS_NONE = 0,	 /* no leaks above the budget */
	LEAKS_FOUND = 1, /* leaks above the budget; or memprof failed, with a message */
	LEAKS_USAGE = 2,
	LEAKS_NOT_INSPECTABLE = 3, /* no such process, no permission, no known allocator ... */
	LEAKS_PAUSE = 4,	   /* it would exceed --max-pause; not stopped, or let go */
	LEAKS_APPROXIMATE = 5,	   /* result is approximate; --require-exact was given */
	LEAKS_GONE = 6,		   /* the process ended during the inspection */
	LEAKS_OVERRUN = 7,	   /* the pause was longer than --max-pause */
};

/* Leaks that count: neither suppressed nor in the baseline. */
struct leaks_sum {
	uint64_t count, bytes; /* including the blocks that they hold */
	uint64_t known, suppressed;
};

/* @name: of the program. */
void leaks_print_core(const struct image *core, const char *name);
void leaks_print_plan(const struct target *t, const struct snapshot_plan *plan);
/* Prints a measured pause, without the end of the line.  @wait_ns: the part of it spent waiting for
 * a processor; 0: not known. */
void leaks_print_pause(uint64_t ns, uint64_t wait_ns);
void leaks_print_heaps(const struct census *c);
/* Prints that the pause was longer than --max-pause, and what would be enough next time. */
void leaks_print_overrun(const struct analysis *a, const struct target *t);
/* @j: the joined recording, or why there is none. */
void leaks_print_report(const struct analysis *a, const struct leaks_sum *sum, struct leak_join *j);
void leaks_print_why(const struct why *w, struct leak_join *j);

#endif
