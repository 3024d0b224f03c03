/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/sort.h"

#include <string.h>
#include "record/order.h"

#define RUN 64u /* runs up to this length are sorted by insertion, then merged */

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

void sort_merge_runs(struct pending **events, struct pending **scratch, size_t *ends, size_t n)
{
	n = join_runs(*events, ends, n);
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
