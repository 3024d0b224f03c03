/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Layouts of CPython 3.9 to 3.13: leaks/python/python_layout.h, dictobject.h and pycore_dict.h, setobject.h.
 */
#include "leaks/python/python_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/python/python.h"
#include "leaks/python/python_layout.h"

#define WORDS 8u /* of an object that are read */

/* In words from the object's start. */
enum {
	DICT_USED = 2,
	DICT_KEYS = 4,
	DICT_VALUES = 5,
	SET_USED = 3,
	SET_MASK = 4,
	SET_TABLE = 5,
	MODULE_DICT = 2,
	MODULE_NAME = 6,
};
#define MOST_TEXT   40u	  /* bytes of the name of a module or variable */
#define LEAST_NAMED 1024u /* elements of containers that are named by their variable */
#define SET_ENTRY   16u
#define DICT_ENTRY  24u
#define TEXT_ENTRY  16u /* of a dict whose keys are all texts, from 3.11 on */

/* What is needed of a table of a dict. */
struct dict_table {
	uint64_t size, entries; /* of the hash table; that fit */
	uint32_t header, entry; /* bytes before the entries; of each */
};

/* A container that is a variable of a module. */
struct variable {
	uint32_t block;
	char text[88]; /* "__main__.sessions" */
};

struct namer {
	struct block_names *n;
	const struct graph *g;
	const struct python *p;
	struct image_view view;
	struct image_view tables;
	uint32_t *id;			/* by type: of an object */
	VEC(struct variable) variables; /* by block */
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

static int by_block(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* Return: the id of the name of a container: its type, and if it is large and a variable of a module
 * also that. */
static uint32_t container_name(struct namer *k, const struct python_type *t, uint64_t addr,
			       uint64_t elements)
{
	const uint32_t block = index_find(&k->g->index, addr);
	size_t low = 0, high = k->variables.n;
	char text[256];
	uint32_t id;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->variables.at[mid].block < block)
			low = mid + 1;
		else
			high = mid;
	}
	if (elements < LEAST_NAMED || low == k->variables.n || k->variables.at[low].block != block)
		return name(k, "%s", t);
	snprintf(text, sizeof(text), "%.150s %s", t->name, k->variables.at[low].text);
	id = block_names_id(k->n, text, t->owner, NAME_OBJECT);
	if (!id)
		k->ret = -ENOMEM;
	return id;
}

static void add_container(struct namer *k, const struct python_type *t, uint64_t addr,
			  uint32_t table, struct container c)
{
	const uint64_t used = c.bytes; /* of the table */

	c.name = container_name(k, t, addr, c.elements);
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

/* Reads a text that can be a name.  Return: false if it is none. */
static bool read_text(const struct namer *k, uint64_t addr, char text[MOST_TEXT + 1])
{
	const uint32_t minor = k->p->types.minor;
	uint64_t word[5];

	if (!addr || !image_read_all(k->n->img, addr, word, sizeof(word)) || !word[TEXT_LENGTH] ||
	    word[TEXT_LENGTH] > MOST_TEXT || !(word[TEXT_STATE] & TEXT_COMPACT) ||
	    !(word[TEXT_STATE] & TEXT_ASCII) || TEXT_KIND(word[TEXT_STATE]) != 1 ||
	    !image_read_all(k->n->img, addr + text_start(minor, word[TEXT_STATE]), text,
			    (size_t)word[TEXT_LENGTH]))
		return false;
	text[word[TEXT_LENGTH]] = 0;
	for (size_t i = 0; i < word[TEXT_LENGTH]; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '.')
			return false;
	}
	return true;
}

/* Notes the variable of @module with this key and value if it is a container. */
static void take_variable(struct namer *k, const char *module, uint64_t key, uint64_t value)
{
	const uint32_t block = value ? index_find(&k->g->index, value) : INDEX_NONE;
	const struct python_type *t = block == INDEX_NONE ? NULL : python_type(k->p, block);
	struct variable v = {.block = block};
	char text[MOST_TEXT + 1];

	if (!t || value != python_start(k->p, block) ||
	    (t->kind != PYTHON_LIST && t->kind != PYTHON_DICT && t->kind != PYTHON_SET) ||
	    !read_text(k, key, text))
		return;
	snprintf(v.text, sizeof(v.text), "%s.%s", module, text);
	if (vec_push(&k->variables, v))
		k->ret = -ENOMEM;
}

static void take_module(struct namer *k, uint32_t block)
{
	uint64_t module[MODULE_NAME + 1], dict[DICT_VALUES + 1], entry[3];
	char text[MOST_TEXT + 1];
	struct dict_table d;
	uint32_t table;

	if (!image_read_all(k->n->img, python_start(k->p, block), module, sizeof(module)) ||
	    !image_read_all(k->n->img, module[MODULE_DICT], dict, sizeof(dict)) ||
	    dict[DICT_VALUES] || !read_text(k, module[MODULE_NAME], text))
		return;
	table = index_find(&k->g->index, dict[DICT_KEYS]);
	if (table == INDEX_NONE || k->g->block[table].addr != dict[DICT_KEYS] ||
	    k->p->type[table] || !read_table(k, table, &d))
		return;
	for (uint64_t i = 0; i < d.entries && !k->ret; i++) {
		const uint64_t at = dict[DICT_KEYS] + d.header + i * d.entry;
		const void *p = image_view(k->n->img, &k->tables, at, d.entry);

		if (!p)
			return;
		memcpy(entry, p, d.entry);
		take_variable(k, text, entry[d.entry / 8 - 2], entry[d.entry / 8 - 1]);
	}
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
		const struct python_type *t = python_type(g->python, i);

		if (t && t->kind == PYTHON_MODULE)
			take_module(&k, i);
	}
	vec_sort(&k.variables, by_block);
	for (uint32_t i = 0; i < g->n && !k.ret; i++) {
		if (g->python->type[i])
			name_object(&k, i);
	}
	free(k.id);
	vec_free(&k.variables);
	image_view_free(&k.view);
	image_view_free(&k.tables);
	return k.ret;
}
