/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Detects that the aggregator is blocked, usually by the recording's disk. */
#ifndef RECORD_STALL_H
#define RECORD_STALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The aggregator's thread, and what stall_look() saw last. */
struct stall {
	pthread_t aggregator;
	uint64_t moved, cpu_ns, waited_ns, looked_ns;
};

struct reader;
/* Updates the stall state and publishes it in the session block.  To be called several times a
 * second: by the reader, and after its end by recorder_stop().  Return: whether the aggregator has
 * had work but made no progress for two seconds. */
bool stall_look(struct reader *r);

#endif
