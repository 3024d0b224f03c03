/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes records into events, follows their blocks in the live table, and writes them. */
#ifndef RECORD_EVENTS_H
#define RECORD_EVENTS_H

#include <stdint.h>

struct aggregator;
struct pending;
/* Processes one record of the batch, with the time @ns (since the start). */
void event_process(struct aggregator *a, const struct pending *p, uint64_t ns);

#endif
