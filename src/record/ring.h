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
	uint64_t at;   /* position of the first byte that was not read yet */
	uint64_t keep; /* bytes before it that the producer must not overwrite */
};

/* Return: the ring of @page, with @keep 0, of which nothing but what was released has been read. */
static inline struct ring ring_of(struct perf_event_mmap_page *page, const void *data,
				  uint64_t size)
{
	return (struct ring){page, data, size, page->data_tail, 0};
}

/* Return: the bytes that are ready, a multiple of 8.  At most the ring's size, even if the
 * producer's head is wrong. */
uint64_t ring_ready(const struct ring *r);
/* Copies @n ready bytes to @out; they count as not read yet. */
void ring_copy(const struct ring *r, uint8_t *out, uint64_t n);
/* @n bytes have been read: releases all but the last r->keep bytes to the producer. */
void ring_advance(struct ring *r, uint64_t n);

#endif
