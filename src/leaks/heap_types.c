/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/heap_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/types.h"

/* Groups blocks by class, the others by size. */
struct grouper {
	struct heap_types *h;
	VEC(uint32_t) of_class; /* class id to 1 + index in the list */
	uint64_t *size;		/* open addressing: size + 1 to index */
	uint32_t *place;
	size_t slots, used;
};

static int add(struct grouper *g, const struct type *t, uint64_t size, uint32_t *place)
{
	struct heap_type fresh = {.size = t ? 0 : size}, *it;

	if (vec_push(&g->h->list, fresh))
		return -ENOMEM;
	*place = (uint32_t)g->h->list.n - 1;
	it = &g->h->list.at[*place];
	it->type = strdup(t ? t->name : "");
	if (it->type && t && t->owner)
		it->owner = strdup(t->owner);
	return it->type ? 0 : -ENOMEM;
}

static int class_place(struct grouper *g, const struct type *t, uint32_t *place)
{
	int ret;

	while (g->of_class.n <= t->id) {
		if (vec_push(&g->of_class, 0))
			return -ENOMEM;
	}
	if (g->of_class.at[t->id]) {
		*place = g->of_class.at[t->id] - 1;
		return 0;
	}
	ret = add(g, t, 0, place);
	if (!ret)
		g->of_class.at[t->id] = *place + 1;
	return ret;
}

static size_t slot_of(const uint64_t *size, size_t slots, uint64_t n)
{
	size_t i = (size_t)(n * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);

	while (size[i] && size[i] != n + 1)
		i = (i + 1) & (slots - 1);
	return i;
}

static int grow(struct grouper *g)
{
	size_t slots = g->slots ? g->slots * 2 : 1024;
	uint64_t *size = calloc(slots, sizeof(*size));
	uint32_t *place = calloc(slots, sizeof(*place));

	if (!size || !place) {
		free(size);
		free(place);
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->slots; i++) {
		size_t to;

		if (!g->size[i])
			continue;
		to = slot_of(size, slots, g->size[i] - 1);
		size[to] = g->size[i];
		place[to] = g->place[i];
	}
	free(g->size);
	free(g->place);
	g->size = size;
	g->place = place;
	g->slots = slots;
	return 0;
}

static int size_place(struct grouper *g, uint64_t size, uint32_t *place)
{
	size_t i;
	int ret;

	if (2 * g->used >= g->slots && grow(g))
		return -ENOMEM;
	i = slot_of(g->size, g->slots, size);
	if (!g->size[i]) {
		ret = add(g, NULL, size, &g->place[i]);
		if (ret)
			return ret;
		g->size[i] = size + 1;
		g->used++;
	}
	*place = g->place[i];
	return 0;
}

static int most_bytes(const void *a, const void *b)
{
	const struct heap_type *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->type, y->type);
}

int heap_types_take(struct heap_types *h, struct image *img, const struct census *c)
{
	struct types *types = types_new(img);
	struct grouper g = {.h = h};
	struct image_view view = {0};
	int ret = types ? 0 : -ENOMEM;

	memset(h, 0, sizeof(*h));
	vec_for_each (&c->blocks, b) {
		const void *p = b->size >= img->arch->word_size
				    ? image_view(img, &view, b->addr, img->arch->word_size)
				    : NULL;
		uint64_t word = p ? arch_word(img->arch, p) : 0;
		uint32_t place = 0;
		struct type t;

		if (!ret)
			ret = types_class(types, word, &t) ? class_place(&g, &t, &place)
							   : size_place(&g, b->size, &place);
		if (ret)
			break;
		h->list.at[place].count++;
		h->list.at[place].bytes += b->size;
		h->count++;
		h->bytes += b->size;
	}
	if (h->list.n)
		qsort(h->list.at, h->list.n, sizeof(h->list.at[0]), most_bytes);
	image_view_free(&view);
	vec_free(&g.of_class);
	free(g.size);
	free(g.place);
	types_free(types);
	return ret;
}

void heap_types_free(struct heap_types *h)
{
	vec_for_each (&h->list, it) {
		free(it->type);
		free(it->owner);
	}
	vec_free(&h->list);
}
