/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the index of a merged recording from the indexes of its parts. */
#ifndef RECORD_PIECES_MERGE_INDEX_H
#define RECORD_PIECES_MERGE_INDEX_H

#include "record/pieces/merge_output.h"

/* Return: whether every part has an index.  Recordings that were cut off and those of page faults
 * have none. */
bool merge_index_possible(const struct merge_parts *parts);

/**
 * merge_index_put() - write the index, followed by the symbols of all parts
 * @o: must contain all events of the parts
 * @carried: number of events of the parts that were left out because they repeat what was live in
 * the previous piece
 * Return: 0, or a negative errno with @err filled.
 */
int merge_index_put(struct merge_output *o, uint64_t carried, struct mp_err *err);

#endif
