/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/sightings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fnv.h"

#define CONTENT_HASHED (1u << 16) /* bytes compared to see whether it is the same block */

static int by_addr(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int sightings_take(struct sightings *seen, const struct graph *g, const struct leaks *l,
		   struct image *img)
{
	uint8_t *buf = malloc(CONTENT_HASHED);
	int ret = buf ? 0 : -ENOMEM;

	memset(seen, 0, sizeof(*seen));
	vec_for_each (&l->direct, leak) {
		const struct heap_block *b = &g->block[leak->block];
		size_t n = ret ? 0 : graph_content(g, leak->block, img, buf, CONTENT_HASHED);
		struct sighting s = {b->addr, b->size, fnv(buf, n)};

		if (ret || vec_push(&seen->list, s)) {
			ret = -ENOMEM;
			break;
		}
	}
	free(buf);
	vec_sort(&seen->list, by_addr);
	return ret;
}

static const struct sighting *find_sighting(const struct sightings *s, uint64_t addr)
{
	struct sighting key = {.addr = addr};

	return vec_search(&s->list, &key, by_addr);
}

int sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		      const struct sightings *now)
{
	uint32_t *keep = calloc(l->direct.n + 1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	for (size_t i = 0; i < l->direct.n; i++) {
		uint64_t addr = g->block[l->direct.at[i].block].addr;
		const struct sighting *a = find_sighting(before, addr),
				      *b = find_sighting(now, addr);

		keep[i] = a && b && a->size == b->size && a->hash == b->hash;
	}
	leaks_keep(l, g, keep);
	free(keep);
	return 0;
}

void sightings_free(struct sightings *s)
{
	vec_free(&s->list);
}
