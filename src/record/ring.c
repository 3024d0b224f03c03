/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/ring.h"

#include <string.h>

uint64_t ring_ready(const struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t n = head - r->at;

	return n <= r->size ? n & ~7ull : r->size;
}

void ring_copy(const struct ring *r, uint8_t *out, uint64_t n)
{
	uint64_t at = r->at & (r->size - 1), first = r->size - at;

	if (first > n)
		first = n;
	memcpy(out, r->data + at, first);
	memcpy(out + first, r->data, n - first);
}

void ring_advance(struct ring *r, uint64_t n)
{
	r->at += n;
	if (r->at - r->page->data_tail > r->keep)
		__atomic_store_n(&r->page->data_tail, r->at - r->keep, __ATOMIC_RELEASE);
}
