/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a leaked block came from; filled by the caller that has a recording of the process. */
#ifndef LEAKS_LEAK_SOURCE_H
#define LEAKS_LEAK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/* Where and when a block was allocated, according to a recording. */
struct leak_source {
	bool known;	 /* false: the recording does not have the block */
	bool older;	 /* age_ns is a lower bound */
	uint32_t stack;	 /* stack id in the recording; 0: none */
	uint32_t tid;	 /* of the thread */
	uint64_t age_ns; /* at the snapshot */
};

#endif
