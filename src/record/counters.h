/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Publishes the recorder's counters for its progress line and for memprof status. */
#ifndef RECORD_COUNTERS_H
#define RECORD_COUNTERS_H

#include <stdint.h>

struct aggregator;
/* Publishes the aggregator's numbers as of @now (ns since the start). */
void counters_show(struct aggregator *a, uint64_t now);

#endif
