/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/clusters.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT_TYPED  256u	  /* bytes that tell a type */
#define CONTENT_HASHED (1u << 16) /* bytes that tell whether it is still the same block */

static size_t content(const struct graph *g, uint32_t block, struct image *img, void *to,
		      size_t max)
{
	const struct heap_block *b = &g->block[block];

	return image_read(img, b->addr, to, b->size < max ? (size_t)b->size : max);
}

static uint64_t fnv(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

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
		size_t n = ret ? 0 : content(g, leak->block, img, buf, CONTENT_HASHED);
		struct sighting s = {b->addr, b->size, fnv(buf, n)};

		if (ret || vec_push(&seen->list, s)) {
			ret = -ENOMEM;
			break;
		}
	}
	free(buf);
	if (seen->list.n)
		qsort(seen->list.at, seen->list.n, sizeof(seen->list.at[0]), by_addr);
	return ret;
}

static const struct sighting *find(const struct sightings *s, uint64_t addr)
{
	struct sighting key = {.addr = addr};

	return s->list.n ? bsearch(&key, s->list.at, s->list.n, sizeof(key), by_addr) : NULL;
}

void sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		       const struct sightings *now)
{
	size_t keep = 0;

	for (size_t i = 0; i < l->direct.n; i++) {
		struct leak leak = l->direct.at[i];
		const struct sighting *a = find(before, g->block[leak.block].addr);
		const struct sighting *b = find(now, g->block[leak.block].addr);

		if (a && b && a->size == b->size && a->hash == b->hash) {
			l->direct.at[keep++] = leak;
			continue;
		}
		l->total_count -= 1 + leak.indirect_count;
		l->total_bytes -= g->block[leak.block].size + leak.indirect_bytes;
	}
	l->direct.n = keep;
}

void sightings_free(struct sightings *s)
{
	vec_free(&s->list);
}

static uint32_t hash_of(const char *type, const char *owner, uint64_t size)
{
	uint64_t h = fnv((const uint8_t *)type, strlen(type)) ^ size * 0x9e3779b97f4a7c15ull;

	if (owner)
		h ^= fnv((const uint8_t *)owner, strlen(owner)) << 1;
	return (uint32_t)(h >> 32 ^ h);
}

static bool same(const struct cluster *c, const char *type, const char *owner, uint64_t size)
{
	return c->size == size && !strcmp(c->type, type) && !c->owner == !owner &&
	       (!owner || !strcmp(c->owner, owner));
}

/* Clusters under construction: hash to 1 + place in the list. */
struct builder {
	struct clusters *c;
	uint32_t *slot;
	uint32_t mask;
};

static struct cluster *cluster_of(struct builder *b, const char *type, const char *owner,
				  uint64_t size)
{
	uint32_t i = hash_of(type, owner, size) & b->mask;
	struct cluster fresh = {.size = size}, *c;

	for (; b->slot[i]; i = (i + 1) & b->mask) {
		c = &b->c->list.at[b->slot[i] - 1];
		if (same(c, type, owner, size))
			return c;
	}
	if (vec_push(&b->c->list, fresh))
		return NULL;
	b->slot[i] = (uint32_t)b->c->list.n;
	c = &b->c->list.at[b->c->list.n - 1];
	c->type = strdup(type);
	c->owner = owner ? strdup(owner) : NULL;
	if (c->type && (!owner || c->owner))
		return c;
	free(c->type);
	free(c->owner);
	b->c->list.n--;
	return NULL;
}

static void show(struct cluster *c, const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < PREVIEW_BYTES && i < n && text[i]; i++)
		c->preview[i] = isprint((unsigned char)text[i]) ? text[i] : '.';
	c->preview[i] = 0;
}

static int largest_first(const void *a, const void *b)
{
	const struct cluster *x = a, *y = b;
	uint64_t p = x->bytes + x->indirect_bytes, q = y->bytes + y->indirect_bytes;

	if (p != q)
		return p > q ? -1 : 1;
	return x->size != y->size ? (x->size > y->size ? -1 : 1) : strcmp(x->type, y->type);
}

static int add(struct builder *b, struct types *types, const struct graph *g,
	       const struct leak *leak, struct image *img, bool show_content)
{
	_Alignas(8) char buf[CONTENT_TYPED];
	size_t n = content(g, leak->block, img, buf, sizeof(buf));
	const struct heap_block *block = &g->block[leak->block];
	struct cluster *c;
	struct type t;

	types_of(types, buf, n, &t);
	c = cluster_of(b, t.name ? t.name : shape_name(t.shape), t.owner, block->size);
	if (!c)
		return -ENOMEM;
	c->count++;
	c->bytes += block->size;
	c->indirect_count += leak->indirect_count;
	c->indirect_bytes += leak->indirect_bytes;
	c->cycles += leak->cycle;
	if (c->samples < CLUSTER_SAMPLES)
		c->sample[c->samples++] = block->addr;
	if (show_content && t.shape == SHAPE_TEXT && !c->preview[0])
		show(c, buf, n);
	return 0;
}

int clusters_make(struct clusters *c, const struct graph *g, const struct leaks *l,
		  struct image *img, bool show_content)
{
	struct builder b = {.c = c, .mask = 1};
	struct types *types = types_new(img);
	int ret = 0;

	memset(c, 0, sizeof(*c));
	while (b.mask < 2 * l->direct.n + 1)
		b.mask *= 2;
	b.slot = calloc(b.mask, sizeof(*b.slot));
	b.mask--;
	if (!types || !b.slot)
		ret = -ENOMEM;
	for (size_t i = 0; i < l->direct.n && !ret; i++)
		ret = add(&b, types, g, &l->direct.at[i], img, show_content);
	if (c->list.n)
		qsort(c->list.at, c->list.n, sizeof(c->list.at[0]), largest_first);
	free(b.slot);
	types_free(types);
	return ret;
}

void clusters_free(struct clusters *c)
{
	vec_for_each (&c->list, it) {
		free(it->type);
		free(it->owner);
	}
	vec_free(&c->list);
}
