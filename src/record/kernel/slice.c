/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/kernel/slice.h"

#include <string.h>
#include "formats/record.h"
#include "record/wire.h"

/* Copies the header and time of the record at @at once, since the target can write there.  A header
 * does not wrap.  Return: whether the record is valid. */
static bool peek(const struct ring *r, uint64_t at, uint64_t ready, struct mpr_free *out)
{
	if (ready - at < 16)
		return false;
	memcpy(&out->h, r->data + ((r->at + at) & (r->size - 1)), 8);
	memcpy(&out->time, r->data + ((r->at + at + 8) & (r->size - 1)), 8);
	return wire_valid((const uint8_t *)out, ready - at);
}

static void count_records(struct slicer *s, const struct ring *r, uint64_t ready)
{
	struct mpr_free rec;

	for (uint64_t at = 0; at < ready && peek(r, at, ready, &rec); at += rec.h.size) {
		uint64_t bin = rec.time > s->low ? (rec.time - s->low) >> s->shift : 0;

		s->bytes[bin < SLICE_BINS ? bin : SLICE_BINS - 1] += rec.h.size;
	}
}

void slice_begin(struct slicer *s, const struct ring *ring, const uint64_t *ready, uint32_t n,
		 uint64_t until, uint64_t most)
{
	struct mpr_free first;

	memset(s, 0, sizeof(*s));
	s->most = most;
	s->low = until;
	for (uint32_t k = 0; k < n; k++) {
		if (peek(&ring[k], 0, ready[k], &first) && first.time < s->low)
			s->low = first.time;
	}
	while ((until - s->low) >> s->shift >= SLICE_BINS)
		s->shift++;
	for (uint32_t k = 0; k < n; k++)
		count_records(s, &ring[k], ready[k]);
}

uint64_t slice_next(struct slicer *s)
{
	uint64_t sum = 0;

	while (s->next < SLICE_BINS) {
		if (sum && sum + s->bytes[s->next] > s->most)
			return s->low + ((uint64_t)s->next << s->shift) - 1;
		sum += s->bytes[s->next++];
	}
	return UINT64_MAX;
}

uint64_t slice_up_to(const struct ring *r, uint64_t ready, uint64_t until)
{
	struct mpr_free rec;
	uint64_t at = 0;

	while (at < ready) {
		if (!peek(r, at, ready, &rec))
			return ready;
		if (rec.time > until)
			return at;
		at += rec.h.size;
	}
	return at;
}
