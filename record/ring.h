/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Consumer's side of perf-format rings: the agent's and the kernel's. */
#ifndef RECORD_RING_H
#define RECORD_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t size; /* data bytes, power of two */
};

/* Bytes that are ready; at most the ring's size, whatever the producer says. */
uint64_t ring_ready(const struct ring *r);
/* Copies @n ready bytes from the tail to @out; the ring still holds them. */
void ring_copy(const struct ring *r, uint8_t *out, uint64_t n);
/* Gives @n bytes back to the producer. */
void ring_advance(struct ring *r, uint64_t n);

#endif
