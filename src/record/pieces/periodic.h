/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the aggregator writes beside events: hooks, modules, marks, what culling held back, and once
 * a second the target's state and the losses. */
#ifndef RECORD_PIECES_PERIODIC_H
#define RECORD_PIECES_PERIODIC_H

#include <stdint.h>

struct aggregator;
/* Writes the hooks and modules that are not in the file yet. */
void put_hooks_and_modules(struct aggregator *a);
/* Writes the marks that were set since the last call, with the time @now (ns since the start). */
void put_marks(struct aggregator *a, uint64_t now);
/* Writes the sums of the culled blocks if there are too many.  In a program with many threads, or whose threads
 * come and go, few blocks have a sum in common. */
void limit_sums(struct aggregator *a);
/* Writes the events that culling holds back and that are old enough at @now, and if a slice ends then
 * the sums of the culled blocks. */
void release_culled(struct aggregator *a, uint64_t now);
/* Ends a slice of culling at @now: writes all that is held back, and the sums. */
void end_slice(struct aggregator *a, uint64_t now);
/* end_slice() at the end of a file, with what was live over time. */
void end_culling(struct aggregator *a, uint64_t now);
/* Calibrates the clock, writes hooks, modules, the target's state and the losses, and flushes the
 * file. */
void each_second(struct aggregator *a, uint64_t now);

#endif
