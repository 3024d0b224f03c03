/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Corrects the order of records whose times are wrong by a moment.  A processor can read its
 * counter before earlier instructions are finished, and the counters of two processors differ
 * slightly.  So an allocation can have an earlier time than the free that made room for it, and a
 * free an earlier time than the allocation of its block by another thread.  The state of the
 * address shows this: if a record does not fit the state, the aggregator searches the next few
 * microseconds for the record that does and processes it first, which is recursive.
 */
#ifndef RECORD_ORDER_OVERTAKEN_H
#define RECORD_ORDER_OVERTAKEN_H

#include <stdbool.h>
#include <stdint.h>

struct aggregator;
/* The current event allocates @addr.  If @addr is live, processes its free first, if that has a
 * slightly later time. */
void overtaken_free(struct aggregator *a, uint64_t addr);
/* The current event ends an unknown block: processes its allocation first, if that has a slightly
 * later time.  Return: false if there is none. */
bool overtaken_alloc(struct aggregator *a, uint64_t addr);
/* The current event is the allocator's own free of @addr.  Return: whether another thread allocated
 * @addr just before; then the free happened before that allocation, despite its later time. */
bool overtaken_by_alloc(const struct aggregator *a, uint64_t addr);

#endif
