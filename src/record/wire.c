/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/wire.h"

#include <stdlib.h>
#include <string.h>

static const uint16_t least_size[] = {
    [MPR_ALLOC - MPR_ALLOC] = sizeof(struct mpr_alloc),
    [MPR_ALLOC_BIG - MPR_ALLOC] = sizeof(struct mpr_alloc_big),
    [MPR_FREE - MPR_ALLOC] = sizeof(struct mpr_free),
    [MPR_REALLOC_BEGIN - MPR_ALLOC] = sizeof(struct mpr_free),
    [MPR_REALLOC_END - MPR_ALLOC] = sizeof(struct mpr_realloc),
    [MPR_MAP - MPR_ALLOC] = sizeof(struct mpr_map),
    [MPR_UNMAP - MPR_ALLOC] = sizeof(struct mpr_map),
    [MPR_UNMAP_FAILED - MPR_ALLOC] = sizeof(struct mpr_map),
    [MPR_REMAP_BEGIN - MPR_ALLOC] = sizeof(struct mpr_map),
    [MPR_REMAP_END - MPR_ALLOC] = sizeof(struct mpr_map),
    [MPR_MALLOPT - MPR_ALLOC] = sizeof(struct mpr_mallopt),
    [MPR_RAW_STACK - MPR_ALLOC] = sizeof(struct mpr_raw_stack),
    [MPR_THREAD - MPR_ALLOC] = sizeof(struct mpr_thread),
    [MPR_FREE_STACK - MPR_ALLOC] = sizeof(struct mpr_free_stack),
    [MPR_FAULT - MPR_ALLOC] = sizeof(struct mpr_fault),
};

bool wire_valid(const uint8_t *p, uint64_t left)
{
	const struct mpr_header *h = (const void *)p;

	return left >= sizeof(*h) + 8 && h->size <= left && h->size % 8 == 0 &&
	       mpr_type(h) >= MPR_ALLOC && mpr_type(h) <= MPR_FAULT &&
	       h->size >= least_size[mpr_type(h) - MPR_ALLOC];
}

/* Raw stacks and MPR_THREAD records belong to events and do not count as events. */
static void count_dropped(struct queue_drop *d, const uint8_t *p)
{
	const struct mpr_header *h = (const void *)p;

	uint32_t type = mpr_type(h);

	d->bytes += h->size;
	if (type == MPR_RAW_STACK || type == MPR_THREAD)
		return;
	d->events[mpr_kind(type)]++;
	d->events[MPR_LOST_FREE] += mpr_ended(h) != 0;
	if (type == MPR_ALLOC)
		d->requested += ((const struct mpr_alloc *)h)->size;
	else if (type == MPR_ALLOC_BIG)
		d->requested += ((const struct mpr_alloc_big *)h)->size;
	else if (type == MPR_REALLOC_END)
		d->requested += ((const struct mpr_realloc *)h)->size;
}

void wire_census(const struct batch *b, struct queue_drop *out)
{
	const uint8_t *p = b->data;

	for (uint32_t k = 0; k < b->nsegments; k++) {
		const uint8_t *end = p + b->segment[k].bytes;

		while (p < end && wire_valid(p, (uint64_t)(end - p))) {
			count_dropped(out, p);
			p += ((const struct mpr_header *)p)->size;
		}
		if (p < end) { /* an invalid record: the rest is not decoded */
			out->events[MPR_LOST_OTHER]++;
			out->bytes += (uint64_t)(end - p);
		}
		p = end;
	}
	out->events[MPR_LOST_FREE] += b->ends.n;
	out->batches++;
}

static bool brings_a_block(uint32_t type)
{
	return type == MPR_ALLOC || type == MPR_ALLOC_BIG || type == MPR_MAP ||
	       type == MPR_MALLOPT || type == MPR_RAW_STACK || type == MPR_FAULT;
}

void wire_drop_blocks(struct batch *b, struct queue_drop *out)
{
	uint8_t *p = b->data, *to = b->data;
	size_t e = 0;

	for (uint32_t k = 0; k < b->nsegments; k++) {
		struct segment *s = &b->segment[k];
		uint8_t *end = p + s->bytes, *first = to, *was = p;
		size_t last = e + s->nends;

		while (p < end && wire_valid(p, (uint64_t)(end - p))) {
			const struct mpr_header *h = (const void *)p;
			uint16_t size = h->size;

			/* Ends stay between the same records. */
			for (; e < last &&
			       b->ends.at[e].position - s->position <= (uint64_t)(p - was);
			     e++)
				b->ends.at[e].position = s->position + (uint64_t)(to - first);
			if (brings_a_block(mpr_type(h))) {
				count_dropped(out, p);
			} else {
				memmove(to, p, size);
				to += size;
			}
			p += size;
		}
		for (; e < last; e++)
			b->ends.at[e].position = s->position + (uint64_t)(to - first);
		if (p < end) {
			out->events[MPR_LOST_OTHER]++;
			out->bytes += (uint64_t)(end - p);
		}
		p = end;
		s->bytes = (uint64_t)(to - first);
	}
	b->size -= b->bytes - (uint64_t)(to - b->data);
	b->bytes = (uint64_t)(to - b->data);
	p = b->bytes ? realloc(b->data, b->bytes) : NULL;
	if (p)
		b->data = p;
}

uint64_t wire_up_to(const uint8_t *p, uint64_t bytes, uint64_t until)
{
	uint64_t at = 0;

	while (at < bytes && wire_valid(p + at, bytes - at) &&
	       ((const struct mpr_free *)(p + at))->time <= until)
		at += ((const struct mpr_header *)(p + at))->size;
	/* Bytes that are not a record are passed on, so that the aggregator counts them. */
	return at < bytes && !wire_valid(p + at, bytes - at) ? bytes : at;
}
