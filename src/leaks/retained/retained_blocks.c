/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/retained/retained_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/intern.h"

/* Containers that are compared with a line of blocks. */
#define MAX_SIBLINGS 256

/* Places of the first blocks of containers, by place. */
struct firsts {
	uint32_t place[MAX_SIBLINGS], container[MAX_SIBLINGS], n;
};

static void firsts_add(struct firsts *f, uint32_t place, uint32_t container)
{
	uint32_t i = f->n++;

	for (; i && f->place[i - 1] > place; i--) {
		f->place[i] = f->place[i - 1];
		f->container[i] = f->container[i - 1];
	}
	f->place[i] = place;
	f->container[i] = container;
}

/* Notes the largest container whose first block is a sibling of @place, and of its kind.  Return: 0
 * or -ENOMEM. */
static int note_siblings(const struct retained_builder *b, struct retained_line *l, uint32_t place)
{
	const uint64_t key = block_names_key(&b->names, b->tree.node[place]);
	const uint32_t above = dominators_parent(&b->tree, place);
	const uint32_t end = above + b->tree.count[above];
	struct firsts f = {.n = 0};
	uint32_t best = UINT32_MAX, i = 0;

	for (uint32_t c = 0; c < b->names.containers.n && c < MAX_SIBLINGS; c++) {
		const uint32_t block =
		    index_search(&b->graph.index, b->names.containers.at[c].first);
		const uint32_t at = block == INDEX_NONE ? INDEX_NONE : b->tree.place[block];

		if (at > above && at < end && block_names_key(&b->names, block) == key)
			firsts_add(&f, at, c);
	}
	for (uint32_t at = above + 1; at < end && i < f.n; at += b->tree.count[at]) {
		while (i < f.n && f.place[i] < at)
			i++;
		for (; i < f.n && f.place[i] == at; i++)
			best = f.container[i] < best ? f.container[i] : best;
	}
	return best == UINT32_MAX
		   ? 0
		   : retained_note_container(b, l, b->names.containers.at[best].first, 1);
}

int retained_describe(struct retained_builder *b, struct retained_line *l, uint32_t place)
{
	const struct heap_block *block = block_at(b, place);
	struct type t;

	l->source_of = block_names_type(&b->names, b->tree.node[place], &t);
	l->name = strdup(t.name ? t.name : shape_name(t.shape));
	l->module = t.owner ? strdup(t.owner) : NULL;
	l->addr = block->addr;
	l->size = block->size;
	vec_for_each (&b->shared, s) {
		if (s->place != place)
			continue;
		l->roots = s->roots;
		for (uint64_t i = 0; i < s->roots && i < RETAINED_ROOTS; i++) {
			struct holder_name n;

			holder_name(&b->holders, s->holder[i], &n);
			l->root[i] = strdup(n.name);
			if (!l->root[i])
				return -ENOMEM;
		}
	}
	if (!l->name || (t.owner && !l->module))
		return -ENOMEM;
	if (retained_note_container(b, l, block->addr, block->size))
		return -ENOMEM;
	/* A list that several variables lead to has all its nodes side by side. */
	return l->source_of == NAME_SHAPE && !l->container.name ? note_siblings(b, l, place) : 0;
}

/* Groups of the blocks below some others. */
struct grouping {
	struct intern *keys;
	VEC(struct retained_group) groups;
};

static int add_to_group(struct retained_builder *b, struct grouping *gr, uint64_t key,
			uint32_t place)
{
	bool fresh;
	uint32_t id = intern_pair(gr->keys, key, 0, &fresh);
	struct retained_group empty = {.key = key, .sample = place}, *g;

	if (!id || (fresh && vec_push(&gr->groups, empty)) || !gr->groups.at)
		return -ENOMEM;
	g = &gr->groups.at[id - 1];
	g->bytes += b->tree.bytes[place];
	g->exact += b->tree.exact[place];
	g->blocks += b->tree.count[place];
	g->count++;
	g->own += block_at(b, place)->size;
	if (b->tree.bytes[place] > b->tree.bytes[g->sample])
		g->sample = place;
	return 0;
}

/* Puts the blocks below @above into groups.  Those with the key @own are part of line @l, and are
 * appended to @above. */
static int make_groups(struct retained_builder *b, struct grouping *gr, struct retained_line *l,
		       struct retained_places *above, uint64_t own)
{
	const struct dominators *t = &b->tree;
	int ret = 0;

	for (size_t i = 0; i < above->list.n && !ret; i++) {
		uint32_t at = above->list.at[i], end = at + t->count[at];

		for (uint32_t c = at + 1; c < end && !ret; c += t->count[c]) {
			uint64_t key;

			if (c + 16 < end && is_block(b, c + 16))
				block_names_fetch(&b->names, t->node[c + 16]);
			if (!is_block(b, c))
				continue;
			key = block_names_key(&b->names, t->node[c]);
			if (key != own) {
				ret = add_to_group(b, gr, key, c);
				continue;
			}
			l->count++;
			l->own += block_at(b, c)->size;
			if (l->size != block_at(b, c)->size)
				l->size = 0;
			ret = vec_push(&above->list, c);
		}
	}
	return ret;
}

static int collect_members(struct retained_builder *b, struct grouping *gr,
			   const struct retained_places *above, uint64_t own)
{
	const struct dominators *t = &b->tree;
	int ret = 0;

	if (!gr->groups.at)
		return 0;
	for (size_t i = 0; i < above->list.n && !ret; i++) {
		uint32_t at = above->list.at[i], end = at + t->count[at];

		for (uint32_t c = at + 1; c < end && !ret; c += t->count[c]) {
			uint64_t key;
			struct retained_group *g;

			if (c + 16 < end && is_block(b, c + 16))
				block_names_fetch(&b->names, t->node[c + 16]);
			if (!is_block(b, c))
				continue;
			key = block_names_key(&b->names, t->node[c]);
			if (key == own)
				continue;
			g = &gr->groups.at[intern_pair(gr->keys, key, 0, NULL) - 1];
			if (g->kept)
				ret = vec_push(&g->members.list, c);
		}
	}
	return ret;
}

static int larger(const void *a, const void *b)
{
	const struct retained_group *x = *(struct retained_group *const *)a,
				    *y = *(struct retained_group *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Marks the @max groups that retain most.  Return: 0 or -ENOMEM. */
static int keep_groups(struct grouping *gr, uint32_t max)
{
	struct retained_group **sorted =
	    malloc((gr->groups.n + 1) * sizeof(struct retained_group *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < gr->groups.n; i++)
		sorted[i] = &gr->groups.at[i];
	qsort(sorted, gr->groups.n, sizeof(*sorted), larger);
	for (size_t i = 0; i < max && i < gr->groups.n; i++)
		sorted[i]->kept = true;
	free(sorted);
	return 0;
}

/* Chooses the groups that become lines; the others become one line. */
static int choose(struct retained_builder *b, struct grouping *gr, struct retained_line *l,
		  uint32_t depth)
{
	struct retained_line *rest = retained_line_new(RETAINED_REST);

	if (!rest || keep_groups(gr, depth < b->o->depth ? b->o->count : 0)) {
		free(rest);
		return -ENOMEM;
	}
	vec_for_each (&gr->groups, g) {
		if (g->kept)
			continue;
		rest->count++;
		rest->bytes += g->bytes;
		rest->blocks += g->blocks;
		rest->exact += g->exact;
	}
	if (rest->count)
		retained_line_insert(l, rest);
	else
		free(rest);
	return 0;
}

int retained_add_group(struct retained_builder *b, struct retained_line *parent,
		       struct retained_group *g, uint32_t depth)
{
	struct retained_line *l = retained_line_new(RETAINED_BLOCKS);
	int ret = l ? retained_describe(b, l, g->sample) : -ENOMEM;

	if (!l)
		return ret;
	l->count = g->count;
	l->own = g->own;
	l->bytes = g->bytes;
	l->blocks = g->blocks;
	l->exact = g->exact;
	if (g->own != g->count * l->size)
		l->size = 0;
	retained_line_insert(parent, l);
	return ret ? ret : retained_add_lines(b, l, &g->members, g->key, depth);
}

/* The recursion is as deep as the report. */
int retained_add_lines(struct retained_builder *b, struct retained_line *l,
		       struct retained_places *above, uint64_t own, uint32_t depth)
{
	struct grouping gr = {.keys = intern_new()};
	int ret = gr.keys ? make_groups(b, &gr, l, above, own) : -ENOMEM;

	if (b->r->line_of && l->kind == RETAINED_BLOCKS) {
		l->number = ++b->r->lines;
		vec_for_each (&above->list, place)
			b->r->line_of[b->tree.node[*place]] = l->number;
	}
	if (!ret)
		ret = choose(b, &gr, l, depth);
	if (!ret)
		ret = collect_members(b, &gr, above, own);
	vec_free(&above->list);
	vec_for_each (&gr.groups, g) {
		if (g->kept && !ret)
			ret = retained_add_group(b, l, g, depth + 1);
	}
	vec_for_each (&gr.groups, g)
		vec_free(&g->members.list);
	vec_free(&gr.groups);
	intern_free(gr.keys);
	return ret;
}
