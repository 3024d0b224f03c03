/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the target's state as read from /proc: thread names, memory use, mappings. */
#ifndef RECORD_LOOK_AT_TARGET_H
#define RECORD_LOOK_AT_TARGET_H

#include <stdint.h>

struct aggregator;
/* Writes the state at @now (ns since the start); after the end of the recording thread names only.
 */
void look_at_target(struct aggregator *a, uint64_t now);

#endif
