/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Publishes the recorder's counters for its progress line and for memprof status. */
#ifndef RECORD_PROGRESS_H
#define RECORD_PROGRESS_H

#include <stdint.h>

struct aggregator;
/* Publishes the aggregator's numbers as of @now (ns since the start). */
void progress_show(struct aggregator *a, uint64_t now);

#endif
