/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which word leads to a container: of a variable if there is one, else of another block. */
#include <errno.h>
#include <stdlib.h>
#include "leaks/types/shape.h"
#include "lib/bitmap.h"

#define AHEAD 32
/* Ways to a container, the best last; .rank is twice that, and one more for the way to its head. */
enum way {
	WAY_NONE,
	WAY_STACK,
	WAY_MEMORY,
	WAY_BLOCK,
	WAY_GLOBAL,
};

struct wanted {
	uint32_t block, found, which;
};

struct seeker {
	struct shapes *s;
	VEC(struct wanted) wanted; /* by block */
	uint64_t *bits;		   /* by block */
};

static int by_block(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->found < y->found ? -1 : x->found > y->found;
}

static bool is_wanted(const struct seeker *k, uint32_t block)
{
	return bitmap_has(k->bits, block);
}

/* Notes a way to @block: the word at @addr, or block @from. */
static void note(struct seeker *k, uint32_t block, enum way way, uint64_t addr, uint32_t from)
{
	size_t low = 0, high = k->wanted.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->wanted.at[mid].block < block)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < k->wanted.n && k->wanted.at[low].block == block; low++) {
		const struct wanted *w = &k->wanted.at[low];
		struct shape_found *f = &k->s->found.at[w->found];
		const uint8_t rank = (uint8_t)(2 * way + !w->which);

		if (rank <= f->rank)
			continue;
		f->rank = rank;
		f->is.addr = addr;
		f->from = from;
		f->which = (uint8_t)w->which;
	}
}

static int want(struct seeker *k)
{
	for (size_t i = 0; i < k->s->found.n; i++) {
		const struct shape_found *f = &k->s->found.at[i];

		for (uint32_t which = 0; which < 2; which++) {
			const struct wanted w = {f->block[which], (uint32_t)i, which};

			if (which && f->block[1] == f->block[0])
				continue;
			bitmap_set(k->bits, w.block);
			if (vec_push(&k->wanted, w))
				return -ENOMEM;
		}
	}
	vec_sort(&k->wanted, by_block);
	return 0;
}

static void seek_roots(struct seeker *k)
{
	static const enum way way[] = {
	    [ROOT_STACK] = WAY_STACK,	[ROOT_GLOBAL] = WAY_GLOBAL, [ROOT_TLS] = WAY_MEMORY,
	    [ROOT_MEMORY] = WAY_MEMORY, [ROOT_CODE] = WAY_MEMORY,   [ROOT_KERNEL] = WAY_NONE,
	};

	vec_for_each (&k->s->g->roots, r) {
		if (r->addr && is_wanted(k, r->block))
			note(k, r->block, way[r->kind], r->addr, INDEX_NONE);
	}
}

static void seek_blocks(struct seeker *k)
{
	const struct graph *g = k->s->g;
	const struct block_names *n = k->s->n;

	for (uint32_t i = 0; i < g->n; i++) {
		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
			const uint32_t to = g->to.at[e];

			if (e + AHEAD < g->to.n)
				__builtin_prefetch(&k->bits[g->to.at[e + AHEAD] / 64]);
			/* A node is no way to the others. */
			if (is_wanted(k, to) && !(n->of[i] && n->of[i] == n->of[to]))
				note(k, to, WAY_BLOCK, 0, i);
		}
	}
}

/* ------------------------------------------------------------- words in blocks -- */

static uint32_t target(const struct shape_found *f)
{
	return f->block[f->which];
}

static int by_holder(const void *a, const void *b)
{
	const struct shape_found *x = *(struct shape_found *const *)a,
				 *y = *(struct shape_found *const *)b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (target(x) != target(y))
		return target(x) < target(y) ? -1 : 1;
	return x->is.first < y->is.first ? -1 : x->is.first > y->is.first;
}

/* Notes that the word at @addr leads to @block, in those of the @n containers that begin there.  Return:
 * how many did not know. */
static size_t note_source(struct shape_found *const *f, size_t n, uint32_t block, uint64_t addr)
{
	size_t low = 0, high = n, fresh = 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (target(f[mid]) < block)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < n && target(f[low]) == block; low++) {
		fresh += !f[low]->is.addr;
		if (!f[low]->is.addr)
			f[low]->is.addr = addr;
	}
	return fresh;
}

/* Finds the words of one block that lead to the @n containers @f. */
static void search(struct shapes *s, struct image_view *view, struct shape_found *const *f,
		   size_t n)
{
	const struct arch *arch = s->g->arch;
	const struct heap_block *b = &s->g->block[f[0]->from];
	const uint64_t end = b->addr + b->size;
	size_t left = n;

	for (uint64_t at = (b->addr + arch->word_size - 1) & ~(arch->word_size - 1ull);
	     at < end && left;) {
		const size_t length =
		    end - at < IMAGE_VIEW_SIZE ? (size_t)(end - at) : IMAGE_VIEW_SIZE;
		const uint8_t *p = image_view(s->img, view, at, length);

		for (size_t i = 0; p && left && i + arch->word_size <= length;
		     i += arch->word_size) {
			const uint32_t to = index_find(&s->g->index, arch_word(arch, p + i));

			if (to != INDEX_NONE)
				left -= note_source(f, n, to, at + i);
		}
		at += length;
	}
}

/* Reads each block that leads to containers once. */
static int search_all(struct shapes *s)
{
	struct shape_found **f = malloc((s->found.n + 1) * sizeof(struct shape_found *));
	struct image_view view = {0};
	size_t n = 0;

	if (!f)
		return -ENOMEM;
	vec_for_each (&s->found, it) {
		if (it->from != INDEX_NONE)
			f[n++] = it;
	}
	qsort(f, n, sizeof(f[0]), by_holder);
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && f[end]->from == f[i]->from)
			end++;
		search(s, &view, f + i, end - i);
	}
	image_view_free(&view);
	free(f);
	return 0;
}

int shape_heads(struct shapes *s)
{
	struct seeker k = {.s = s, .bits = bitmap_new(s->g->n)};
	int ret = k.bits ? 0 : -ENOMEM;

	if (!ret && s->found.n)
		ret = want(&k);
	if (!ret && s->found.n) {
		seek_roots(&k);
		seek_blocks(&k);
		ret = search_all(s);
	}
	vec_for_each (&s->found, f) {
		if (!ret)
			ret = block_names_container(s->n, &f->is);
	}
	vec_free(&k.wanted);
	free(k.bits);
	return ret;
}
