/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/heap_types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/graph_take.h"

/* Groups blocks by name, the others by size. */
struct grouper {
	struct heap_types *h;
	VEC(uint32_t) of_name; /* id of the name to 1 + index in the list */
	uint64_t *size;	       /* open addressing: size + 1 to index */
	uint32_t *place;
	size_t slots, used;
};

static int add_type(struct grouper *g, const struct block_name *t, uint64_t size, uint32_t *place)
{
	struct heap_type fresh = {.size = t ? 0 : size, .source = t ? t->source : NAME_NONE}, *it;

	if (vec_push(&g->h->list, fresh))
		return -ENOMEM;
	*place = (uint32_t)g->h->list.n - 1;
	it = &g->h->list.at[*place];
	it->number = *place + 1;
	it->type = strdup(t ? t->text : "");
	if (it->type && t && t->owner)
		it->owner = strdup(t->owner);
	return it->type ? 0 : -ENOMEM;
}

static int name_place(struct grouper *g, const struct block_name *t, uint32_t id, uint32_t *place)
{
	int ret;

	if (vec_reach(&g->of_name, id))
		return -ENOMEM;
	if (g->of_name.at[id]) {
		*place = g->of_name.at[id] - 1;
		return 0;
	}
	ret = add_type(g, t, 0, place);
	if (!ret)
		g->of_name.at[id] = *place + 1;
	return ret;
}

static size_t slot_of(const uint64_t *size, size_t slots, uint64_t n)
{
	size_t i = (size_t)(n * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);

	while (size[i] && size[i] != n + 1)
		i = (i + 1) & (slots - 1);
	return i;
}

static int grow_table(struct grouper *g)
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

	if (2 * g->used >= g->slots && grow_table(g))
		return -ENOMEM;
	i = slot_of(g->size, g->slots, size);
	if (!g->size[i]) {
		ret = add_type(g, NULL, size, &g->place[i]);
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

/* ------------------------------------------------------------- containers -- */

/* Notes in @to where the object of @c is.  Return: 0 or -ENOMEM. */
static int note_where(const struct block_names *n, struct modules *m, const struct graph *g,
		      const struct container *c, struct heap_container *to)
{
	const uint64_t addr = c->addr ? c->addr : c->first;
	const uint32_t module = modules_at(m, addr), block = index_find(&g->index, addr);
	struct module_variable v;
	struct module_name name = {0};
	char text[512];
	struct type t;

	if (block != INDEX_NONE) {
		block_names_type(n, block, &t);
		snprintf(text, sizeof(text), "in %.300s at %#" PRIx64,
			 t.name ? t.name : shape_name(t.shape), g->block[block].addr);
	} else if (module == UINT32_MAX) {
		snprintf(text, sizeof(text), "at %#" PRIx64, addr);
	} else if (modules_variable(m, addr, &v)) {
		modules_name(m, &v, 0, &name);
	} else {
		modules_place(m, addr, name.name, sizeof(name.name));
	}
	to->where = strdup(name.name[0] ? name.name : text);
	to->module = name.name[0] ? strdup(modules_path(m, module)) : NULL;
	return to->where && (!name.name[0] || to->module) ? 0 : -ENOMEM;
}

static int most_container_bytes(const void *a, const void *b)
{
	const struct heap_container *x = a, *y = b;

	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes > y->sum.bytes ? -1 : 1;
	return strcmp(x->type, y->type);
}

static int add_containers(struct heap_types *h, const struct block_names *n, struct modules *m,
			  const struct graph *g)
{
	uint32_t *of = calloc(n->list.n + 1, sizeof(*of)); /* by name: 1 + index in the list */
	int ret = of ? 0 : -ENOMEM;

	for (size_t i = 0; i < n->list.n && !ret; i++) {
		const struct block_name *name = &n->list.at[i];
		struct heap_container c = {.source = name->source, .sum = name->sum};

		if (!name->sum.count)
			continue;
		c.type = strdup(name->text);
		if (!c.type || vec_push(&h->containers, c)) {
			free(c.type);
			ret = -ENOMEM;
		}
		of[i] = (uint32_t)h->containers.n;
	}
	/* The largest come first. */
	for (size_t i = 0; i < n->containers.n && !ret; i++) {
		const struct container *c = &n->containers.at[i];
		struct heap_container *to = &h->containers.at[of[c->name - 1] - 1];

		if (to->where)
			continue;
		to->largest = c->elements;
		ret = note_where(n, m, g, c, to);
	}
	free(of);
	vec_sort(&h->containers, most_container_bytes);
	return ret;
}

/* ------------------------------------------------------------- all of it -- */

static int add_blocks(struct heap_types *h, const struct block_names *n, const struct graph *graph)
{
	struct grouper g = {.h = h};
	int ret = 0;

	for (uint32_t i = 0; i < graph->n && !ret; i++) {
		const struct block_name *name = block_names_of(n, i);
		const uint64_t size = graph->block[i].size;
		uint32_t place = 0;

		ret = name ? name_place(&g, name, n->of[i], &place) : size_place(&g, size, &place);
		if (ret)
			break;
		if (h->type_of)
			h->type_of[i] = place + 1;
		h->list.at[place].count++;
		h->list.at[place].bytes += size;
		h->count++;
		h->bytes += size;
	}
	vec_sort(&h->list, most_bytes);
	vec_free(&g.of_name);
	free(g.size);
	free(g.place);
	return ret;
}

int heap_types_sum(struct heap_types *h, const struct block_names *n, struct modules *m,
		   const struct graph *g, bool type_of)
{
	int ret;

	memset(h, 0, sizeof(*h));
	if (type_of) {
		h->type_of = calloc(g->n + 1ull, sizeof(*h->type_of));
		if (!h->type_of)
			return -ENOMEM;
	}
	ret = add_blocks(h, n, g);
	return ret ? ret : add_containers(h, n, m, g);
}

int heap_types_take(struct heap_types *h, struct image *img, const struct census *c, bool type_of,
		    struct mp_err *err)
{
	struct modules *modules = modules_new(img);
	struct coverage cover;
	struct graph graph = {0};
	struct block_names names = {0};
	int ret;

	memset(h, 0, sizeof(*h));
	ret = graph_take(&graph, img, c, true, &cover, err);
	if (!ret) {
		ret = modules ? block_names_take(&names, &graph, img, modules) : -ENOMEM;
		if (!ret)
			ret = heap_types_sum(h, &names, modules, &graph, type_of);
		if (ret)
			ret = mp_fail(err, MP_EXIT_FAILURE, ret,
				      "no memory for the types of %u blocks", graph.n);
	}
	h->notes = block_names_take_notes(&names);
	block_names_free(&names);
	graph_free(&graph);
	modules_free(modules);
	return ret;
}

void heap_types_free(struct heap_types *h)
{
	vec_for_each (&h->list, it) {
		free(it->type);
		free(it->owner);
	}
	vec_for_each (&h->containers, c) {
		free(c->type);
		free(c->where);
		free(c->module);
	}
	vec_free(&h->list);
	vec_free(&h->containers);
	free(h->type_of);
	block_notes_free(&h->notes);
}
