/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Consumer side of perf-format rings: those of the agent and of the kernel. */
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

/* Return: the bytes that are ready, a multiple of 8.  At most the ring's size, even if the
 * producer's head is wrong. */
uint64_t ring_ready(const struct ring *r);
/* Copies @n ready bytes from the tail to @out without removing them. */
void ring_copy(const struct ring *r, uint8_t *out, uint64_t n);
/* Releases @n bytes to the producer. */
void ring_advance(struct ring *r, uint64_t n);

#endif
