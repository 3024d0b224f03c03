/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/clusters.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/python/python.h"
#include "lib/fnv.h"

#define CONTENT_TYPED 256u /* bytes examined to find the type */
#define MAX_PREVIEWS  (1u << 16)

static uint32_t hash_of(const char *type, const char *owner, uint64_t size,
			const struct leak_source *source)
{
	uint64_t h = fnv_text(type) ^ (size + ((uint64_t)source->stack << 32) + source->known) *
					  0x9e3779b97f4a7c15ull;

	if (owner)
		h ^= fnv_text(owner) << 1;
	return (uint32_t)(h >> 32 ^ h);
}

static bool same(const struct cluster *c, const char *type, const char *owner, uint64_t size,
		 const struct leak_source *source)
{
	return c->size == size && c->source.known == source->known &&
	       c->source.stack == source->stack && !strcmp(c->type, type) && !c->owner == !owner &&
	       (!owner || !strcmp(c->owner, owner));
}

/* Clusters under construction: hash table with 1 + index in the list. */
struct builder {
	struct clusters *c;
	uint32_t *slot;
	uint32_t mask;
};

static struct cluster *cluster_of(struct builder *b, const char *type, const char *owner,
				  uint64_t size, const struct leak_source *source)
{
	uint32_t i = hash_of(type, owner, size, source) & b->mask;
	struct cluster fresh = {.number = (uint32_t)b->c->list.n,
				.size = size,
				.source = *source,
				.youngest_ns = source->age_ns};
	struct cluster *c;

	for (; b->slot[i]; i = (i + 1) & b->mask) {
		c = &b->c->list.at[b->slot[i] - 1];
		if (same(c, type, owner, size, source))
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

/* Keeps the text only: then clusters can be made again without the image. */
static int keep_preview(struct clusters *c, uint32_t block, const char *text, size_t n)
{
	struct preview p = {.block = block};

	if (c->previews.n == MAX_PREVIEWS)
		return 0;
	for (size_t i = 0; i < PREVIEW_BYTES && i < n && text[i]; i++)
		p.text[i] = isprint((unsigned char)text[i]) ? text[i] : '.';
	return vec_push(&c->previews, p);
}

static void count_leak(struct cluster *c, struct leak *leak, const struct heap_block *block,
		       const struct leak_source *source)
{
	leak->cluster = c->number;
	c->count++;
	c->bytes += block->size;
	c->indirect_count += leak->indirect_count;
	c->indirect_bytes += leak->indirect_bytes;
	c->cycles += leak->cycle;
	if (c->samples < CLUSTER_SAMPLES)
		c->sample[c->samples++] = block->addr;
	c->several_threads |= source->tid != c->source.tid;
	if (source->age_ns < c->youngest_ns)
		c->youngest_ns = source->age_ns;
	if (source->age_ns > c->source.age_ns)
		c->source = *source;
}

static int add_leak(struct builder *b, struct types *types, const struct graph *g,
		    struct leak *leak, struct image *img, bool show_content)
{
	static const struct leak_source unknown;
	_Alignas(8) char buf[CONTENT_TYPED];
	size_t n = graph_content(g, leak->block, img, buf, sizeof(buf));
	const struct heap_block *block = &g->block[leak->block];
	struct cluster *c;
	struct type t;

	if (!python_describe(g->python, leak->block, &t))
		types_of(types, buf, n, &t);
	c = cluster_of(b, t.name ? t.name : shape_name(t.shape), t.owner, block->size, &unknown);
	if (!c)
		return -ENOMEM;
	count_leak(c, leak, block, &unknown);
	return show_content && t.shape == SHAPE_TEXT ? keep_preview(b->c, leak->block, buf, n) : 0;
}

static int builder_begin(struct builder *b, struct clusters *c, size_t leaks)
{
	*b = (struct builder){.c = c, .mask = 1};
	while (b->mask < 2 * leaks + 1)
		b->mask *= 2;
	b->slot = calloc(b->mask, sizeof(*b->slot));
	b->mask--;
	return b->slot ? 0 : -ENOMEM;
}

static int largest_first(const void *a, const void *b)
{
	const struct cluster *x = a, *y = b;
	uint64_t p = x->bytes + x->indirect_bytes, q = y->bytes + y->indirect_bytes;

	if (p != q)
		return p > q ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strcmp(x->type, y->type);
}

static void show_previews(struct clusters *c, const struct leaks *l)
{
	vec_for_each (&c->previews, p) {
		uint32_t owner = l->owner[p->block];
		struct cluster *of = owner ? &c->list.at[l->direct.at[owner - 1].cluster] : NULL;

		if (of && !of->preview[0])
			memcpy(of->preview, p->text, sizeof(of->preview));
	}
}

static void builder_end(struct builder *b, const struct leaks *l, bool whole)
{
	struct clusters *c = b->c;

	if (whole)
		show_previews(c, l);
	vec_sort(&c->list, largest_first);
	free(b->slot);
}

int clusters_make(struct clusters *c, const struct graph *g, struct leaks *l, struct image *img,
		  bool show_content)
{
	struct types *types = types_new(img);
	struct builder b;
	int ret;

	memset(c, 0, sizeof(*c));
	ret = builder_begin(&b, c, l->direct.n);
	if (!types)
		ret = -ENOMEM;
	for (size_t i = 0; i < l->direct.n && !ret; i++)
		ret = add_leak(&b, types, g, &l->direct.at[i], img, show_content);
	builder_end(&b, l, !ret);
	types_free(types);
	return ret;
}

static void free_list(struct clusters *c)
{
	vec_for_each (&c->list, it) {
		free(it->type);
		free(it->owner);
	}
	vec_free(&c->list);
}

int clusters_split(struct clusters *c, const struct graph *g, struct leaks *l,
		   const struct leak_source *source)
{
	const struct cluster **old = calloc(c->list.n + 1, sizeof(*old));
	struct clusters before = *c;
	struct builder b;
	int ret = builder_begin(&b, c, l->direct.n);

	memset(&c->list, 0, sizeof(c->list));
	if (!old)
		ret = -ENOMEM;
	for (size_t i = 0; i < before.list.n && !ret; i++)
		old[before.list.at[i].number] = &before.list.at[i];
	for (size_t i = 0; i < l->direct.n && !ret; i++) {
		struct leak *leak = &l->direct.at[i];
		const struct cluster *was = old[leak->cluster];
		const struct heap_block *block = &g->block[leak->block];
		struct cluster *to = cluster_of(&b, was->type, was->owner, block->size, &source[i]);

		if (to)
			count_leak(to, leak, block, &source[i]);
		else
			ret = -ENOMEM;
	}
	builder_end(&b, l, !ret);
	free(old);
	free_list(&before);
	return ret;
}

void clusters_free(struct clusters *c)
{
	free_list(c);
	vec_free(&c->previews);
}
