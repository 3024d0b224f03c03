/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts what was lost, where and when. */
#ifndef RECORD_LOSSES_H
#define RECORD_LOSSES_H

#include <stdint.h>
#include "formats/file.h"

struct aggregator;
/* Return: the current losses, from the counters of the agent, the queue and the aggregator.  Called
 * by the aggregator, or while it does not run. */
struct mp_losses losses_now(const struct aggregator *a);
/* Notes when losses happened.  The agent only counts them, so a loss is dated between two calls. */
void losses_note(struct aggregator *a, uint64_t now);
/* Counts a record of @type that the aggregator has processed. */
void losses_see(struct mp_losses *l, uint32_t type);
/* Publishes the queue's numbers in the session block, for memprof status. */
void losses_show(const struct aggregator *a);

#endif
