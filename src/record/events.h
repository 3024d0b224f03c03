/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes records into events, follows their blocks in the live table, and writes them. */
#ifndef RECORD_EVENTS_H
#define RECORD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aggregator;
struct pending;
/* Processes one record of the batch, with the time @ns (since the start). */
void event_process(struct aggregator *a, const struct pending *p, uint64_t ns);

/* The event a->order->events[@i] is the end of a block whose time is not known exactly.  Return: true
 * if it had to be moved behind other events (order_postpone()). */
bool event_postpone(struct aggregator *a, size_t i);

/* Processes the allocation @p and its end @end, which is the next event.  Return: false if that is for
 * event_process() to do, one by one. */
bool event_pair(struct aggregator *a, const struct pending *p, const struct pending *end);

#endif
