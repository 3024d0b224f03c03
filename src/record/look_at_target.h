/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the target's state as read from /proc: thread names, memory use, mappings. */
#ifndef RECORD_LOOK_AT_TARGET_H
#define RECORD_LOOK_AT_TARGET_H

#include <stdint.h>

struct aggregator;
struct mpf_writer;
/* Writes the state at @now (ns since the start); after the end of the recording thread names only.
 */
void look_at_target(struct aggregator *a, uint64_t now);
/* Writes the names of the threads that have rings, as last read, to @file. */
void put_names(const struct aggregator *a, struct mpf_writer *file);

#endif
