/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "record/wire.h"

#define FIRST_EVENTS 65536u
#define RUN	     64u /* runs up to this length are sorted by insertion, then merged */

static const struct mpr_free *record(const uint8_t *p)
{
	return (const void *)p; /* every record begins with the header and time of this one */
}

/* Return: whether a complete record of a known type, not later than @now, is at @p. */
static bool valid(const uint8_t *p, uint64_t left, uint64_t now)
{
	return wire_valid(p, left) && record(p)->time <= now;
}

static int more_room(struct order *o)
{
	size_t cap = o->cap ? o->cap * 2 : FIRST_EVENTS;
	struct pending *p = reallocarray(o->events, cap, sizeof(*p)), *q;

	if (!p)
		return -ENOMEM;
	o->events = p;
	q = reallocarray(o->scratch, cap, sizeof(*q));
	if (!q)
		return -ENOMEM;
	o->scratch = q;
	o->cap = cap;
	return 0;
}

static inline int add(struct order *o, const uint8_t *rec, uint32_t slot)
{
	if (o->n == o->cap && more_room(o))
		return -ENOMEM;
	o->events[o->n++] = (struct pending){record(rec)->time, rec, slot};
	return 0;
}

static void merge(const struct pending *a, size_t na, const struct pending *b, size_t nb,
		  struct pending *out)
{
	while (na && nb) {
		if (a->time <= b->time) {
			*out++ = *a++;
			na--;
		} else {
			*out++ = *b++;
			nb--;
		}
	}
	memcpy(out, a, na * sizeof(*a));
	memcpy(out + na, b, nb * sizeof(*b));
}

static void insert(struct pending *p, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct pending v = p[i];
		size_t k = i;

		while (k && p[k - 1].time > v.time) {
			p[k] = p[k - 1];
			k--;
		}
		p[k] = v;
	}
}

/* Sorts the records of one ring.  They are in order except where signal handlers wrote records in
 * between, so runs sorted by insertion usually join without a merge.  Only records of a malicious
 * target need one. */
static void sort_ring(struct order *o, size_t first)
{
	struct pending *p = o->events + first;
	size_t n = o->n - first;

	for (size_t i = 0; i < n; i += RUN)
		insert(p + i, n - i < RUN ? n - i : RUN);
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t i = 0; i + width < n; i += 2 * width) {
			size_t nb = n - i - width < width ? n - i - width : width;

			if (p[i + width - 1].time <= p[i + width].time)
				continue;
			merge(p + i, width, p + i + width, nb, o->scratch);
			memcpy(p + i, o->scratch, (width + nb) * sizeof(*p));
		}
	}
}

/* Joins neighbouring runs that are also in order of time, such as the kept records of a ring and
 * its new ones.  Return: the number of runs. */
static size_t join_runs(const struct order *o, size_t *ends, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		const struct pending *p = o->events + (out ? ends[out - 1] : 0);

		if (out && p[-1].time <= p[0].time)
			out--;
		ends[out++] = ends[i];
	}
	return out;
}

/* Merges the sorted runs that end at the indices @ends (the last one at o->n). */
static void merge_runs(struct order *o, size_t *ends, size_t n)
{
	n = join_runs(o, ends, n);
	while (n > 1) {
		struct pending *swap = o->events;
		size_t out = 0, from = 0;

		for (size_t i = 0; i < n; i += 2) {
			size_t mid = ends[i], end = i + 1 < n ? ends[i + 1] : mid;

			merge(o->events + from, mid - from, o->events + mid, end - mid,
			      o->scratch + from);
			from = end;
			ends[out++] = end;
		}
		n = out;
		o->events = o->scratch;
		o->scratch = swap;
	}
}

uint64_t order_take(struct order *o, const struct batch *b, uint64_t now)
{
	size_t *ends = calloc(b->nsegments + 2, sizeof(*ends)), n = 0;
	const uint8_t *p = o->carry;
	uint64_t given_up = 0;

	o->n = 0;
	if (!ends)
		return b->nsegments;
	for (size_t i = 0; i < o->ncarry && !add(o, p, o->carry_slot[i]); i++)
		p += record(p)->h.size;
	if (o->n)
		ends[n++] = o->n;
	p = b->data;
	for (uint32_t k = 0; k < b->nsegments; k++) {
		const struct segment *s = &b->segment[k];
		const uint8_t *end = p + s->bytes;
		size_t first = o->n;

		for (; p < end; p += record(p)->h.size) {
			if (!valid(p, (uint64_t)(end - p), now) || add(o, p, s->slot)) {
				given_up++;
				break;
			}
		}
		p = end;
		if (o->n > first) {
			sort_ring(o, first);
			ends[n++] = o->n;
		}
	}
	merge_runs(o, ends, n);
	free(ends);
	return given_up;
}

void order_keep(struct order *o, size_t from)
{
	size_t n = 0, bytes = 0;
	uint8_t *kept = NULL;

	for (size_t i = from; i < o->n; i++) {
		if (o->events[i].slot == ORDER_TAKEN)
			continue;
		o->events[from + n++] = o->events[i];
		bytes += record(o->events[i].rec)->h.size;
	}
	if (n > o->cap_carry) {
		uint32_t *s = reallocarray(o->carry_slot, 2 * n, sizeof(*s));

		if (s) {
			o->carry_slot = s;
			o->cap_carry = 2 * n;
		}
	}
	if (bytes && n <= o->cap_carry)
		kept = malloc(bytes);
	o->ncarry = 0;
	bytes = 0;
	for (size_t i = from; kept && i < from + n; i++) {
		uint16_t size = record(o->events[i].rec)->h.size;

		memcpy(kept + bytes, o->events[i].rec, size);
		bytes += size;
		o->carry_slot[o->ncarry++] = o->events[i].slot;
	}
	free(o->carry);
	o->carry = kept;
	o->n = 0;
}

void order_free(struct order *o)
{
	free(o->events);
	free(o->scratch);
	free(o->carry);
	free(o->carry_slot);
}
