/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sites without blocks stay in the table until it is full, since most get blocks again. */
#include "model/history/sites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define FIRST 1024u

static uint32_t home(const struct sites *s, const struct site *k)
{
	uint64_t h =
	    (uint64_t)k->tid << 32 | (uint64_t)k->hook << 16 | (uint64_t)k->flags << 8 | k->weight;

	return (uint32_t)(h * 0x9e3779b97f4a7c15ull >> 32) & (s->size - 1);
}

static bool same(const struct site *a, const struct site *b)
{
	return a->tid == b->tid && a->hook == b->hook && a->flags == b->flags &&
	       a->weight == b->weight;
}

/* Return: the table entry of @k, or the free entry where it belongs. */
static uint32_t *entry_of(const struct sites *s, const struct site *k)
{
	uint32_t i = home(s, k);

	while (s->table[i] && !same(&s->at.at[s->table[i] - 1], k))
		i = (i + 1) & (s->size - 1);
	return &s->table[i];
}

/* Makes a table of @size with only the sites that have blocks. */
static int rebuild(struct sites *s, uint32_t size)
{
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	free(s->table);
	s->table = table;
	s->size = size;
	s->filled = s->unused = 0;
	for (uint32_t id = 0; id < s->at.n; id++) {
		struct site *k = &s->at.at[id];

		if (k->blocks) {
			*entry_of(s, k) = id + 1;
			s->filled++;
		} else {
			k->tid = s->unused;
			s->unused = id + 1;
		}
	}
	return 0;
}

static int make_room(struct sites *s)
{
	uint32_t used = 0;

	if (s->table && s->filled < s->size / 2)
		return 0;
	vec_for_each (&s->at, k)
		used += k->blocks > 0;
	if (!s->table)
		return rebuild(s, FIRST);
	return rebuild(s, used > s->size / 4 ? s->size * 2 : s->size);
}

static int new_id(struct sites *s, const struct site *site, uint32_t *id)
{
	if (!s->unused) {
		*id = (uint32_t)s->at.n;
		return vec_push(&s->at, *site);
	}
	*id = s->unused - 1;
	s->unused = s->at.at[*id].tid;
	s->at.at[*id] = *site;
	return 0;
}

int sites_add(struct sites *s, const struct site *site, uint32_t *id)
{
	struct site fresh = *site;
	uint32_t *place;

	if (make_room(s))
		return -ENOMEM;
	place = entry_of(s, site);
	if (*place) {
		*id = *place - 1;
	} else {
		fresh.blocks = 0;
		if (new_id(s, &fresh, id))
			return -ENOMEM;
		*place = *id + 1;
		s->filled++;
	}
	s->at.at[*id].blocks++;
	return 0;
}

void sites_free(struct sites *s)
{
	vec_free(&s->at);
	free(s->table);
	*s = (struct sites){0};
}
