/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stable sorts of events by time, fast for what is nearly in order, O(n log n) for any times. */
#ifndef RECORD_ORDER_SORT_H
#define RECORD_ORDER_SORT_H

#include <stddef.h>

struct pending;

/**
 * sort_events() - sort the records of one ring
 * @scratch: room for @n events
 * They are in order except where signal handlers wrote records in between.
 */
void sort_events(struct pending *p, size_t n, struct pending *scratch);

/**
 * sort_merge_runs() - merge sorted runs
 * @events: the runs, one after the other; swapped with @scratch, which is as long, as needed
 * @ends: where each of the @n runs ends; overwritten
 */
void sort_merge_runs(struct pending **events, struct pending **scratch, size_t *ends, size_t n);

#endif
