/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Layouts of CPython 3.9 to 3.13: listobject.h, dictobject.h and pycore_dict.h, setobject.h.
 */
#include "leaks/python_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/python.h"

#define WORDS 8u /* of an object that are read */

/* In words from the object's start. */
enum {
	LIST_SIZE = 2,
	LIST_ITEMS = 3,
	DICT_USED = 2,
	DICT_KEYS = 4,
	DICT_VALUES = 5,
	SET_USED = 3,
	SET_MASK = 4,
	SET_TABLE = 5,
};
#define SET_ENTRY  16u
#define DICT_ENTRY 24u
#define TEXT_ENTRY 16u /* of a dict whose keys are all texts, from 3.11 on */

/* What is needed of a table of a dict. */
struct dict_table {
	uint64_t size, entries; /* of the hash table; that fit */
	uint32_t header, entry; /* bytes before the entries; of each */
};

struct namer {
	struct block_names *n;
	const struct graph *g;
	const struct python *p;
	struct image_view view;
	struct image_view tables;
	uint32_t *id; /* by type: of an object */
	int ret;
};

static uint32_t name(struct namer *k, const char *format, const struct python_type *t)
{
	char text[256];
	uint32_t id;

	snprintf(text, sizeof(text), format, t->name);
	id = block_names_id(k->n, text, t->owner, NAME_OBJECT);
	if (!id)
		k->ret = -ENOMEM;
	return id;
}

/* Names the block that begins at @addr, and is no object.  Return: it, or INDEX_NONE. */
static uint32_t name_part(struct namer *k, uint64_t addr, const char *format,
			  const struct python_type *t)
{
	const uint32_t b = index_find(&k->g->index, addr);
	uint32_t id;

	if (b == INDEX_NONE || k->g->block[b].addr != addr || k->p->type[b])
		return INDEX_NONE;
	id = name(k, format, t);
	if (id)
		block_names_set(k->n, b, id);
	return b;
}

static void add_container(struct namer *k, const struct python_type *t, uint64_t addr,
			  uint32_t table, struct container c)
{
	const uint64_t used = c.bytes; /* of the table */

	c.name = name(k, "%s", t);
	c.addr = addr;
	c.blocks = 0;
	c.bytes = 0;
	if (table != INDEX_NONE) {
		c.first = k->g->block[table].addr;
		c.blocks = 1;
		c.bytes = k->g->block[table].size;
		c.unused = c.bytes > used ? c.bytes - used : 0;
	}
	if (c.name && block_names_container(k->n, &c))
		k->ret = -ENOMEM;
}

static void take_list(struct namer *k, const struct python_type *t, uint64_t addr,
		      const uint64_t *word)
{
	const uint32_t items = name_part(k, word[LIST_ITEMS], "items of %s", t);
	uint64_t most = items == INDEX_NONE ? 0 : k->g->block[items].size / 8;

	if (word[LIST_SIZE] > most)
		return; /* damaged, or just being changed */
	add_container(
	    k, t, addr, items,
	    (struct container){.elements = word[LIST_SIZE], .bytes = 8 * word[LIST_SIZE]});
}

/* Reads the head of a dict's table. */
static bool read_table(struct namer *k, uint32_t block, struct dict_table *out)
{
	const struct heap_block *b = &k->g->block[block];
	const bool old = k->p->types.minor < 11;
	uint64_t index, head[5];
	const void *p = b->size >= sizeof(head)
			    ? image_view(k->n->img, &k->tables, b->addr, sizeof(head))
			    : NULL;

	if (!p)
		return false;
	memcpy(head, p, sizeof(head));
	if (old) {
		if (!head[1] || head[1] & (head[1] - 1) || head[1] >> 40)
			return false;
		out->size = head[1];
		index = out->size <= 0xff      ? out->size
			: out->size <= 0xffff  ? 2 * out->size
			: out->size >> 32 == 0 ? 4 * out->size
					       : 8 * out->size;
	} else {
		if ((head[1] & 0xff) > 40 || (head[1] >> 8 & 0xff) > 43)
			return false;
		out->size = 1ull << (head[1] & 0xff);
		index = 1ull << (head[1] >> 8 & 0xff);
	}
	out->header = (uint32_t)(old ? 40 : 32);
	out->entry = !old && head[1] >> 16 & 0xff ? TEXT_ENTRY : DICT_ENTRY;
	out->entries = out->size * 2 / 3;
	if (index > b->size || out->header + index + out->entries * out->entry > b->size)
		return false;
	out->header += (uint32_t)index;
	return true;
}

static void take_dict(struct namer *k, const struct python_type *t, uint64_t addr,
		      const uint64_t *word)
{
	const uint64_t used = word[DICT_USED];
	struct container c = {.elements = used};
	struct dict_table d;
	uint32_t table;

	if (word[DICT_VALUES]) {
		/* The keys are those of a class, and shared by its objects. */
		name_part(k, word[DICT_VALUES], "values of %s", t);
		name_part(k, word[DICT_KEYS], "table of %s", t);
		return;
	}
	table = name_part(k, word[DICT_KEYS], "table of %s", t);
	if (table != INDEX_NONE) {
		if (!read_table(k, table, &d) || used > d.entries)
			return;
		c.buckets = d.size;
		c.bytes = d.header + used * d.entry;
	} else if (used) {
		return;
	}
	add_container(k, t, addr, table, c);
}

static void take_set(struct namer *k, const struct python_type *t, uint64_t addr,
		     const uint64_t *word)
{
	const uint64_t buckets = word[SET_MASK] + 1;
	uint32_t table = INDEX_NONE;

	if (!buckets || buckets & word[SET_MASK] || word[SET_USED] > buckets)
		return;
	if (buckets > 8) { /* else it is in the object */
		table = name_part(k, word[SET_TABLE], "table of %s", t);
		if (table == INDEX_NONE || k->g->block[table].size / SET_ENTRY < buckets)
			return;
	}
	add_container(k, t, addr, table,
		      (struct container){.elements = word[SET_USED],
					 .buckets = buckets,
					 .bytes = SET_ENTRY * word[SET_USED]});
}

/* Attributes of an object without a dict, from 3.11 on: in a block that the words before the object
 * lead to. */
static void take_values(struct namer *k, const struct python_type *t, const uint64_t *before)
{
	uint32_t b = INDEX_NONE;

	if (t->before != 32)
		return;
	if (k->p->types.minor == 11)
		b = index_find(&k->g->index, before[0]);
	else if (k->p->types.minor == 12 && before[1] & 1)
		b = index_find(&k->g->index, before[1]);
	if (b != INDEX_NONE && !k->p->type[b])
		name_part(k, k->g->block[b].addr, "attributes of %s", t);
}

static void name_object(struct namer *k, uint32_t block)
{
	const struct python_type *t = python_type(k->p, block);
	const uint32_t type = k->p->type[block] - 1u;
	const struct heap_block *b = &k->g->block[block];
	uint64_t word[4 + WORDS] = {0};
	const uint64_t *object = word + t->before / 8;
	size_t size =
	    b->size < 8 * (WORDS + t->before / 8) ? (size_t)b->size : 8 * (WORDS + t->before / 8);
	const void *p = image_view(k->n->img, &k->view, b->addr, size);
	uint32_t *id;

	if (!p)
		return;
	memcpy(word, p, size);
	id = &k->id[type];
	if (!*id)
		*id = name(k, "%s", t);
	if (*id)
		block_names_set(k->n, block, *id);
	take_values(k, t, word);
	if (t->kind == PYTHON_LIST)
		take_list(k, t, b->addr + t->before, object);
	else if (t->kind == PYTHON_DICT)
		take_dict(k, t, b->addr + t->before, object);
	else if (t->kind == PYTHON_SET)
		take_set(k, t, b->addr + t->before, object);
}

int python_names(struct block_names *n, const struct graph *g)
{
	struct namer k = {.n = n, .g = g, .p = g->python};

	if (!g->python)
		return 0;
	k.id = calloc(g->python->types.list.n + 1, sizeof(*k.id));
	if (!k.id)
		k.ret = -ENOMEM;
	for (uint32_t i = 0; i < g->n && !k.ret; i++) {
		if (g->python->type[i])
			name_object(&k, i);
	}
	free(k.id);
	image_view_free(&k.view);
	image_view_free(&k.tables);
	return k.ret;
}
