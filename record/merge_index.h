/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The index of a merged recording: what is live in it at the end is known from the indexes of its
 * parts. */
#ifndef RECORD_MERGE_INDEX_H
#define RECORD_MERGE_INDEX_H

#include "record/merge_output.h"

/* Has every part an index?  Not those that were cut off, nor those of page faults. */
bool merge_index_possible(const struct merge_parts *parts);

/**
 * merge_index_put() - write the index, and behind it the symbols of all parts
 * @o: all events of the parts are in it
 * @carried: events of the parts that are not in it, as they repeat what was live before
 * Return: 0, or a negative errno with @err filled.
 */
int merge_index_put(struct merge_output *o, uint64_t carried, struct mp_err *err);

#endif
