/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/python/python.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/python/python.h"
#include "heaps/scan.h"
#include "leaks/python/python_layout.h"
#include "leaks/python/python_unused.h"

#define SMALL_COUNT 4096u
/* Sizes of blocks that can be an interpreter: PyInterpreterState. */
#define LEAST_STATE (4u << 10)
#define MOST_STATE  (4u << 20)
#define PIECE	    (IMAGE_VIEW_SIZE / 2)

/* Weak references: PyWeakReference.wr_object, .wr_prev and .wr_next, from the object's start. */
#define WEAK_OBJECT 16u
#define WEAK_LINKS  40u

/* In programs at low addresses, a pointer can look like a count.  A count of 0 is that of an object
 * that was freed, or the contents that a block had before. */
static bool is_count(const struct image *img, uint64_t word)
{
	return word && word <= UINT32_MAX && (word < SMALL_COUNT || !image_map_at(img, word));
}

static bool fits(const struct python_type *t, uint64_t size)
{
	const uint64_t least = t->before + t->size;

	return size >= least && (!t->fixed || size <= least + PYTHON_PADDING);
}

/* Return: 1 + index of the type of the object in a block of @size bytes that begins with the @n
 * words at @word; 0: it is none. */
static uint16_t classify(const struct python_types *t, const struct image *img,
			 const uint64_t *word, size_t n, uint64_t size)
{
	static const uint8_t starts[] = {2, 0, 4}; /* in words, the most frequent one first */

	for (size_t i = 0; i < sizeof(starts); i++) {
		const unsigned int at = starts[i];
		const struct python_type *type;
		uint32_t found;

		if (at + 2 > n)
			continue;
		found = python_types_find(t, word[at + 1]);
		if (found == UINT32_MAX)
			continue;
		type = &t->list.at[found];
		if (type->before != 8 * at || !fits(type, size) || !is_count(img, word[at]))
			continue;
		return (uint16_t)(found + 1);
	}
	return 0;
}

/* Searches a block for the state of a collector. */
static int find_collector(struct python *p, struct image *img, struct image_view *view,
			  const struct heap_block *b)
{
	const size_t need = 8 * PYTHON_COLLECTOR_WORDS;

	for (uint64_t at = b->addr; at + need <= b->addr + b->size; at += PIECE) {
		uint64_t left = b->addr + b->size - at;
		size_t n = left < PIECE + need ? (size_t)left : PIECE + need;
		const uint8_t *bytes = image_view(img, view, at, n);
		uint64_t word[PYTHON_COLLECTOR_WORDS];

		for (size_t i = 0; bytes && i + need <= n; i += 8) {
			struct heap_range r = {at + i, at + i + need, HEAP_METADATA};

			memcpy(&word[9], bytes + i + 72, 8);
			if (word[9] != at + i)
				continue;
			memcpy(word, bytes + i, need);
			if (python_is_collector(img, word, at + i) && vec_push(&p->collectors, r))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Notes what is unused of the block with the items of a list.  @list: its words. */
static void note_items(struct python *p, const struct index *x, const uint64_t *list)
{
	const uint32_t b = index_find(x, list[LIST_ITEMS]);

	if (b != INDEX_NONE && p->block[b].addr == list[LIST_ITEMS])
		p->unused[b] = python_unused_by_items(list, p->block[b].size);
}

static int find_objects(struct python *p, struct image *img, const struct index *x, size_t n)
{
	struct image_view view = {0}, state = {0};
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		const struct heap_block *b = &p->block[i];
		const struct python_type *type;
		uint64_t word[PYTHON_HEAD] = {0};
		size_t words = b->size / 8 < PYTHON_HEAD ? (size_t)(b->size / 8) : PYTHON_HEAD;
		const void *at = words ? image_view(img, &view, b->addr, 8 * words) : NULL;

		if (!at)
			continue;
		memcpy(word, at, 8 * words);
		p->type[i] = classify(&p->types, img, word, words, b->size);
		type = python_type(p, (uint32_t)i);
		if (type)
			p->unused[i] = python_unused_by_object(&p->types, type, word, b->size);
		if (type && type->kind == PYTHON_LIST)
			note_items(p, x, word + type->before / 8);
		if (!p->type[i] && b->size >= LEAST_STATE && b->size <= MOST_STATE)
			ret = find_collector(p, img, &state, b);
	}
	image_view_free(&view);
	image_view_free(&state);
	return ret;
}

/* Is @link, from a list of the collector, the head of a list, or the links of an object? */
static bool is_link(const struct python *p, const struct index *x, uint64_t link)
{
	const uint32_t b = index_find(x, link);
	const struct python_type *t = b == INDEX_NONE ? NULL : python_type(p, b);

	if (t)
		return t->gc && link == p->block[b].addr + t->before - 16;
	vec_for_each (&p->types.collectors, r) {
		if (link - r->start < r->end - r->start)
			return true;
	}
	vec_for_each (&p->collectors, r) {
		if (link - r->start < r->end - r->start)
			return true;
	}
	return false;
}

/* An object that the collector does not know has no links.  While the collector runs, it has a
 * number instead of the second one. */
static bool are_links(const struct python *p, const struct index *x, uint64_t next, uint64_t prev)
{
	if (!next)
		return prev <= UINT32_MAX;
	return is_link(p, x, next & ~3ull) && (prev <= UINT32_MAX || is_link(p, x, prev & ~3ull));
}

/*
 * Removes the objects whose links lead elsewhere: a block that was allocated again can have the
 * remains of an object.  The first words are then references that must not be overlooked.
 */
static void check_links(struct python *p, struct image *img, const struct index *x, size_t n)
{
	struct image_view view = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct python_type *t = python_type(p, i);
		uint64_t link[2];
		const void *at;

		if (!t || !t->gc)
			continue;
		at = image_view(img, &view, p->block[i].addr + t->before - 16, sizeof(link));
		if (at)
			memcpy(link, at, sizeof(link));
		if (!at || !are_links(p, x, link[0], link[1]))
			p->type[i] = 0;
	}
	image_view_free(&view);
}

/* With PYTHONMALLOC=malloc, Python has no arenas, but objects all the same. */
static int minor_without_arenas(struct image *img, uint32_t *minor)
{
	struct py_heap h = {0};
	int ret;

	if (img->arch->elf_machine != EM_X86_64 || !scan_has_library(img, "python3."))
		return 0;
	ret = python_find(img, &h);
	if (ret == -ENOENT)
		*minor = h.minor;
	return ret == -ENOMEM ? ret : 0;
}

int python_take(struct python **out, struct image *img, const struct census *c,
		const struct index *x)
{
	struct python *p;
	uint32_t minor = 0;
	int ret;

	*out = NULL;
	vec_for_each (&c->heaps, h) {
		if (!minor)
			minor = python_minor(h);
	}
	ret = minor ? 0 : minor_without_arenas(img, &minor);
	if (ret || !minor)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->block = c->blocks.at;
	p->type = calloc(c->blocks.n + 1, sizeof(*p->type));
	p->unused = calloc(c->blocks.n + 1, sizeof(*p->unused));
	ret = p->type && p->unused ? python_types_take(&p->types, img, p->block, c->blocks.n, minor)
				   : -ENOMEM;
	if (!ret)
		ret = find_objects(p, img, x, c->blocks.n);
	if (!ret) {
		check_links(p, img, x, c->blocks.n);
		*out = p;
		return 0;
	}
	python_free(p);
	return ret;
}

void python_free(struct python *p)
{
	if (!p)
		return;
	python_types_free(&p->types);
	vec_free(&p->collectors);
	free(p->type);
	free(p->unused);
	free(p);
}

unsigned int python_hidden(const struct python *p, uint32_t block, struct heap_range *range)
{
	const struct python_type *t = python_type(p, block);
	const struct heap_block *b = &p->block[block];
	uint64_t start = b->addr + (t ? t->before : 0);
	unsigned int n = 0;

	if (t && t->gc)
		range[n++] = (struct heap_range){start - 16, start, HEAP_METADATA};
	if (t && t->kind == PYTHON_WEAK) {
		range[n++] = (struct heap_range){start + WEAK_OBJECT, start + WEAK_OBJECT + 8,
						 HEAP_METADATA};
		range[n++] =
		    (struct heap_range){start + WEAK_LINKS, start + WEAK_LINKS + 16, HEAP_METADATA};
	}
	if (t && t->kind == PYTHON_STR)
		range[n++] = (struct heap_range){start + 8 * TEXT_STATE, start + 8 * TEXT_STATE + 8,
						 HEAP_METADATA};
	if (p->unused[block])
		range[n++] = (struct heap_range){b->addr + b->size - p->unused[block],
						 b->addr + b->size, HEAP_METADATA};
	for (size_t i = 0; !t && b->size >= LEAST_STATE && i < p->collectors.n; i++) {
		const struct heap_range *r = &p->collectors.at[i];

		if (n < PYTHON_HIDDEN && r->start >= b->addr && r->end <= b->addr + b->size)
			range[n++] = *r;
	}
	return n;
}
