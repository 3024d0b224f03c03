/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/options/nearest.h"

#include <string.h>

#define LONGEST 64 /* longer words are not compared */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][LONGEST + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *oldest = before;

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t changed = last[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] = least(changed, least(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = oldest;
	}
	return last[nb];
}

struct nearest nearest_to(const char *word, size_t n)
{
	return (struct nearest){.word = word, .n = n};
}

void nearest_offer(struct nearest *s, const char *candidate)
{
	size_t n = strlen(candidate), d;

	if (!s->n || s->n > LONGEST || n > LONGEST)
		return;
	d = distance(s->word, s->n, candidate, n);
	if (s->n >= 3 && n > s->n && !strncmp(candidate, s->word, s->n))
		d = 1;
	if (d > (n > s->n ? n : s->n) / 3 || (s->best && d >= s->distance))
		return;
	s->best = candidate;
	s->distance = d;
}
