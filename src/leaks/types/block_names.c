/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/block_names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/intern.h"

#define MAX_TEXT 512 /* longer names are cut */

/* ------------------------------------------------------------- names -- */

uint32_t block_names_id(struct block_names *n, const char *text, const char *owner,
			enum name_source source)
{
	char key[MAX_TEXT + 256];
	struct block_name fresh = {.owner = owner, .source = source};
	bool first;
	uint32_t id;

	snprintf(key, sizeof(key), "%c%.200s\n%.*s", '0' + (char)source, owner ? owner : "",
		 MAX_TEXT, text);
	id = intern_text(n->texts, key, &first);
	if (!id || !first || id > BLOCK_NAMES_MOST)
		return id < BLOCK_NAMES_MOST ? id : BLOCK_NAMES_MOST;
	fresh.text = strndup(id < BLOCK_NAMES_MOST ? text : "(of other types)", MAX_TEXT);
	if (fresh.text && !vec_push(&n->list, fresh))
		return id;
	free(fresh.text);
	return 0;
}

const char *name_source_text(enum name_source source)
{
	static const char *const text[] = {
	    [NAME_NONE] = NULL,	    [NAME_VTABLE] = "vtable", [NAME_OBJECT] = "object",
	    [NAME_DWARF] = "dwarf", [NAME_STACK] = "stack",   [NAME_SHAPE] = "shape",
	};

	return text[source];
}

/* ------------------------------------------------------------- containers -- */

int block_names_container(struct block_names *n, const struct container *c)
{
	struct container_sum *s = &n->list.at[c->name - 1].sum;

	s->count++;
	s->elements += c->elements;
	s->blocks += c->blocks;
	s->bytes += c->bytes;
	s->unused += c->unused;
	s->buckets += c->buckets;
	if (c->bytes < BLOCK_NAMES_LEAST_BYTES && c->elements < BLOCK_NAMES_LEAST_ELEMENTS)
		return 0;
	return vec_push(&n->containers, *c);
}

int block_names_note(struct block_names *n, const char *format, ...)
{
	va_list args;
	char *text;
	int ret;

	va_start(args, format);
	ret = vasprintf(&text, format, args);
	va_end(args);
	if (ret < 0)
		return -ENOMEM;
	if (!vec_push(&n->notes.list, text))
		return 0;
	free(text);
	return -ENOMEM;
}

int block_names_variable(struct block_names *n, uint64_t addr, uint32_t id)
{
	const struct variable_type v = {addr, id};

	return vec_push(&n->variables, v);
}

static int larger(const void *a, const void *b)
{
	const struct container *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_address(const void *a, const void *b)
{
	const struct container_place *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->container < y->container ? -1 : x->container > y->container;
}

static int variable_by_address(const void *a, const void *b)
{
	const struct variable_type *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int block_names_settle(struct block_names *n)
{
	vec_sort(&n->variables, variable_by_address);
	vec_sort(&n->containers, larger);
	for (size_t i = 0; i < n->containers.n; i++) {
		const struct container *c = &n->containers.at[i];
		const struct container_place object = {c->addr, (uint32_t)i},
					     first = {c->first, (uint32_t)i};

		if ((c->addr && vec_push(&n->places, object)) ||
		    (c->first && vec_push(&n->places, first)))
			return -ENOMEM;
	}
	vec_sort(&n->places, by_address);
	return 0;
}

const struct container *block_names_container_in(const struct block_names *n, uint64_t addr,
						 uint64_t size)
{
	size_t low = 0, high = n->places.n;
	uint32_t most = UINT32_MAX;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (n->places.at[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < n->places.n && n->places.at[low].addr - addr < size; low++) {
		if (n->places.at[low].container < most)
			most = n->places.at[low].container;
	}
	return most == UINT32_MAX ? NULL : &n->containers.at[most];
}

const struct block_name *block_names_variable_type(const struct block_names *n, uint64_t addr)
{
	const struct variable_type key = {.addr = addr};
	const struct variable_type *v = vec_search(&n->variables, &key, variable_by_address);

	return v ? &n->list.at[v->name - 1] : NULL;
}

/* ------------------------------------------------------------- all of it -- */

int block_names_init(struct block_names *n, const struct graph *g, struct image *img)
{
	*n = (struct block_names){.img = img, .block = g->block};
	n->types = types_new(img);
	n->of = calloc(g->n + 1ull, sizeof(*n->of));
	n->texts = intern_new();
	return n->types && n->of && n->texts ? 0 : -ENOMEM;
}

struct block_notes block_names_take_notes(struct block_names *n)
{
	const struct block_notes notes = n->notes;

	n->notes = (struct block_notes){0};
	return notes;
}

void block_notes_free(struct block_notes *notes)
{
	vec_for_each (&notes->list, text)
		free(*text);
	vec_free(&notes->list);
}

void block_names_free(struct block_names *n)
{
	vec_for_each (&n->list, it)
		free(it->text);
	block_notes_free(&n->notes);
	vec_free(&n->list);
	vec_free(&n->containers);
	vec_free(&n->places);
	vec_free(&n->variables);
	types_free(n->types);
	intern_free(n->texts);
	free(n->of);
	memset(n, 0, sizeof(*n));
}

uint64_t block_names_key(const struct block_names *n, uint32_t block)
{
	if (block_names_has(n, block))
		return 1ull << 63 | n->of[block];
	return (n->block[block].size << 1 | (n->of[block] == BLOCK_NAMES_TEXT)) & ~(1ull << 63);
}

enum name_source block_names_type(const struct block_names *n, uint32_t block, struct type *out)
{
	const struct heap_block *b = &n->block[block];
	const struct block_name *name = block_names_of(n, block);
	_Alignas(8) char buf[256];

	if (name) {
		*out = (struct type){SHAPE_CLASS, name->text, name->owner, 0};
		return name->source;
	}
	types_of(
	    n->types, buf,
	    image_read(n->img, b->addr, buf, b->size < sizeof(buf) ? (size_t)b->size : sizeof(buf)),
	    out);
	return NAME_NONE;
}
