/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order/sort.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "record/order/order.h"

#define RUN	64u /* runs up to this length are sorted by insertion, then merged */
#define MERGED	4u  /* up to this many runs are merged, more are distributed */
#define PER_BIN 4u  /* events of a bin, on average */

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

/* Runs sorted by insertion usually join without a merge.  Only records of a malicious target need
 * one. */
void sort_events(struct pending *p, size_t n, struct pending *scratch)
{
	for (size_t i = 0; i < n; i += RUN)
		insert(p + i, n - i < RUN ? n - i : RUN);
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t i = 0; i + width < n; i += 2 * width) {
			size_t nb = n - i - width < width ? n - i - width : width;

			if (p[i + width - 1].time <= p[i + width].time)
				continue;
			merge(p + i, width, p + i + width, nb, scratch);
			memcpy(p + i, scratch, (width + nb) * sizeof(*p));
		}
	}
}

/* Joins neighbouring runs that are also in order of time, such as the kept records of a ring and
 * its new ones.  Return: the number of runs. */
static size_t join_runs(const struct pending *events, size_t *ends, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		const struct pending *p = events + (out ? ends[out - 1] : 0);

		if (out && p[-1].time <= p[0].time)
			out--;
		ends[out++] = ends[i];
	}
	return out;
}

/* Equal intervals of time.  Runs fill them in order, which is fast. */
struct bins {
	uint64_t first; /* time at which they begin */
	unsigned int shift;
	uint32_t n,
	    *at; /* of each: first the number of its events, then where its next event goes */
};

static uint64_t bin_of(const struct bins *b, const struct pending *e)
{
	return (e->time - b->first) >> b->shift;
}

static bool bins_begin(struct bins *b, const struct pending *events, const size_t *ends, size_t n)
{
	uint64_t last = 0;

	b->first = UINT64_MAX;
	for (size_t i = 0, at = 0; i < n; at = ends[i++]) {
		b->first = events[at].time < b->first ? events[at].time : b->first;
		last = events[ends[i] - 1].time > last ? events[ends[i] - 1].time : last;
	}
	b->n = (uint32_t)(ends[n - 1] / PER_BIN + 1);
	while ((last - b->first) >> b->shift >= b->n)
		b->shift++;
	b->at = calloc(b->n, sizeof(*b->at));
	return b->at;
}

/* Sorts the runs @events into @to.  Return: false if there is no memory. */
static bool distribute(const struct pending *events, struct pending *to, struct pending *scratch,
		       const size_t *ends, size_t n)
{
	struct bins b = {0};
	uint32_t at = 0;

	if (ends[n - 1] > UINT32_MAX || !bins_begin(&b, events, ends, n))
		return false;
	for (size_t i = 0; i < ends[n - 1]; i++)
		b.at[bin_of(&b, &events[i])]++;
	for (uint32_t i = 0; i < b.n; i++) {
		uint32_t filled = b.at[i];

		b.at[i] = at;
		at += filled;
	}
	for (size_t i = 0; i < ends[n - 1]; i++)
		to[b.at[bin_of(&b, &events[i])]++] = events[i];
	for (uint32_t i = 0, begin = 0; i < b.n; begin = b.at[i++])
		sort_events(to + begin, b.at[i] - begin, scratch);
	free(b.at);
	return true;
}

void sort_merge_runs(struct pending **events, struct pending **scratch, size_t *ends, size_t n)
{
	n = join_runs(*events, ends, n);
	if (n > MERGED && distribute(*events, *scratch, *events, ends, n)) {
		struct pending *sorted = *scratch;

		*scratch = *events;
		*events = sorted;
		return;
	}
	while (n > 1) {
		struct pending *from = *events, *to = *scratch;
		size_t out = 0, at = 0;

		for (size_t i = 0; i < n; i += 2) {
			size_t mid = ends[i], end = i + 1 < n ? ends[i + 1] : mid;

			merge(from + at, mid - at, from + mid, end - mid, to + at);
			at = end;
			ends[out++] = end;
		}
		n = out;
		*events = to;
		*scratch = from;
	}
}
