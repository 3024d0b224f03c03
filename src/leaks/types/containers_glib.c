/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * GLib's GList, GSList, GPtrArray and GHashTable.  Programs have only their addresses.  Before
 * GLib 2.76 lists, and the structures themselves, are in slices: parts of a larger block.
 */
#include <stddef.h>
#include <string.h>
#include "heaps/chain.h"
#include "leaks/types/containers.h"
#include "lib/intern.h"

static bool is_glib(const struct dwarf_type *t, const char *name)
{
	return t->raw && !t->scope[0] && !strcmp(t->raw, name);
}

/* Is the object of @size bytes within one block? */
static bool in_block(const struct dwarf_walk *w, uint64_t addr, uint64_t size)
{
	const uint32_t block = index_find(&w->g->index, addr);
	const struct heap_block *b;

	if (block == INDEX_NONE)
		return false;
	b = &w->g->block[block];
	return size <= b->size && addr - b->addr <= b->size - size;
}

/* Claims the block that begins at @addr for the container, and counts it.  @size: of the object, whose
 * block could also be a larger one with slices; 0: an array. */
static void claim_own(struct dwarf_walk *w, uint64_t addr, uint64_t size, uint32_t id,
		      struct container *c)
{
	const uint32_t block = dwarf_block(w, addr, size);

	/* A block of slices has many. */
	if (block == INDEX_NONE || (size && w->g->block[block].size >= 2 * size + 32) ||
	    !dwarf_claim(w, block, id))
		return;
	c->blocks++;
	c->bytes += w->g->block[block].size;
}

/* ------------------------------------------------------------- GList, GSList -- */

enum { NEXT, PREV };

static bool know_glist(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const path[] = {"next", "prev"};

	l->flag = is_glib(t, "_GList");
	if ((!l->flag && !is_glib(t, "_GSList")) || !t->size ||
	    !dwarf_paths(w, t, path, l->flag ? 2 : 1, l->at, NULL))
		return false;
	l->node_size = t->size;
	l->id = dwarf_name(w, "", l->flag ? "GList" : "GSList", "", NULL);
	l->id_of[0] = dwarf_name(w, "node of ", l->flag ? "GList" : "GSList", "", NULL);
	return true;
}

static void take_glist(struct dwarf_walk *w, uint64_t at, uint64_t first,
		       const struct dwarf_layout *l)
{
	struct container c = {.addr = at, .first = first};
	struct chain chain = {0};
	uint64_t p[2] = {0}, node;

	/* Only from its head: others have the address of the middle or of the end. */
	if (!in_block(w, first, l->node_size) || !dwarf_words(w, first, l, l->flag ? 2 : 1, p) ||
	    p[PREV] || !dwarf_count_once(w, first))
		return;
	for (node = first; node; c.elements++) {
		if (dwarf_late(w) || chain_cycles(&chain, node) ||
		    !in_block(w, node, l->node_size) || !dwarf_word(w, node + l->at[NEXT], &node)) {
			w->broken++;
			return;
		}
	}
	for (node = first; node; (void)dwarf_word(w, node + l->at[NEXT], &node)) {
		const uint64_t blocks = c.blocks;

		claim_own(w, node, l->node_size, l->id_of[0], &c);
		/* A slice. */
		if (blocks == c.blocks)
			c.bytes += l->node_size;
	}
	dwarf_add(w, l, &c);
}

const struct dwarf_container container_glist = {know_glist, NULL, take_glist};

/* ------------------------------------------------------------- GPtrArray -- */

enum { DATA, LENGTH };

static bool know_gptrarray(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	static const char *const path[] = {"pdata", "len"};

	if (!is_glib(t, "_GPtrArray") || !dwarf_paths(w, t, path, 2, l->at, NULL))
		return false;
	l->id = l->id_of[0] = dwarf_name(w, "", "GPtrArray", "", NULL);
	l->id_of[1] = dwarf_name(w, "array of ", "GPtrArray", "", NULL);
	return true;
}

static void take_gptrarray(struct dwarf_walk *w, uint64_t at, uint64_t addr,
			   const struct dwarf_layout *l)
{
	struct container c = {.addr = at, .first = addr};
	uint64_t data, length;
	uint32_t block;

	if (!in_block(w, addr, l->type->size) || !dwarf_word(w, addr + l->at[DATA], &data) ||
	    !dwarf_memory_number(w->memory, addr + l->at[LENGTH], 4, &length))
		return;
	block = data ? dwarf_block(w, data, length * w->word) : INDEX_NONE;
	if ((data ? block == INDEX_NONE : length != 0) || !dwarf_count_once(w, addr))
		return;
	c.elements = length;
	/* GLib's own structure has room, counts and a function behind the public part. */
	claim_own(w, addr, l->type->size + 3 * (uint64_t)w->word, l->id_of[0], &c);
	if (block != INDEX_NONE) {
		c.unused = w->g->block[block].size - length * w->word;
		claim_own(w, data, 0, l->id_of[1], &c);
	}
	dwarf_add(w, l, &c);
}

const struct dwarf_container container_gptrarray = {know_gptrarray, NULL, take_gptrarray};

/* ------------------------------------------------------------- GHashTable -- */

/* struct _GHashTable is not in GLib's headers (glib/ghash.c): size, mod, mask, nnodes, noccupied, all of
 * 4 bytes (the first of the size of a word from 2.58 on), from 2.60 on two bits in 4 bytes more; then the
 * addresses of keys, hashes and values. */
struct ghash {
	uint64_t size, mask, nodes, occupied, keys, hashes, values;
	uint64_t bytes; /* of the structure so far */
};

static bool read_ghash(struct dwarf_walk *w, uint64_t addr, bool word_size, bool bits,
		       struct ghash *h)
{
	struct dwarf_memory *m = w->memory;
	const uint64_t size = word_size ? w->word : 4, ints = addr + size;
	uint64_t arrays = ints + 4 * (4ull + bits);

	arrays = (arrays + w->word - 1) / w->word * w->word;
	h->bytes = arrays + 3 * (uint64_t)w->word - addr;
	if (!dwarf_memory_number(m, addr, (unsigned int)size, &h->size) ||
	    !dwarf_memory_number(m, ints + 4, 4, &h->mask) ||
	    !dwarf_memory_number(m, ints + 8, 4, &h->nodes) ||
	    !dwarf_memory_number(m, ints + 12, 4, &h->occupied) ||
	    !dwarf_word(w, arrays, &h->keys) || !dwarf_word(w, arrays + w->word, &h->hashes) ||
	    !dwarf_word(w, arrays + 2 * w->word, &h->values))
		return false;
	return h->size >= 8 && h->size <= 1u << 31 && !(h->size & (h->size - 1)) &&
	       h->mask == h->size - 1 && h->nodes <= h->occupied && h->occupied <= h->size &&
	       dwarf_block(w, h->keys, h->size * 4) != INDEX_NONE &&
	       dwarf_block(w, h->hashes, h->size * 4) != INDEX_NONE &&
	       dwarf_block(w, h->values, h->size * 4) != INDEX_NONE;
}

static bool know_ghash(struct dwarf_walk *w, struct dwarf_type *t, struct dwarf_layout *l)
{
	if (!is_glib(t, "_GHashTable"))
		return false;
	l->id = l->id_of[0] = dwarf_name(w, "", "GHashTable", "", NULL);
	l->id_of[1] = dwarf_name(w, "array of ", "GHashTable", "", NULL);
	return true;
}

/* Hashes of 0 and 1 are empty places and removed elements.  Return: false if there are not as many others
 * as it has elements. */
static bool count_agrees(struct dwarf_walk *w, const struct ghash *h)
{
	uint64_t n = 0, hash;

	for (uint64_t i = 0; i < h->size && !dwarf_late(w); i++) {
		if (!dwarf_memory_number(w->memory, h->hashes + 4 * i, 4, &hash))
			return false;
		n += hash >= 2;
	}
	return n == h->nodes;
}

static void take_ghash(struct dwarf_walk *w, uint64_t at, uint64_t addr,
		       const struct dwarf_layout *l)
{
	struct container c = {.addr = at, .first = addr};
	struct ghash h;
	uint64_t arrays;

	if (!read_ghash(w, addr, true, true, &h) && !read_ghash(w, addr, false, true, &h) &&
	    !read_ghash(w, addr, false, false, &h))
		return;
	if (!in_block(w, addr, h.bytes) || !count_agrees(w, &h) || !dwarf_count_once(w, addr))
		return;
	c.elements = h.nodes;
	c.buckets = h.size;
	/* Two functions, a count (and a version), and two more functions follow. */
	claim_own(w, addr, h.bytes + 5 * (uint64_t)w->word, l->id_of[0], &c);
	arrays = c.bytes;
	claim_own(w, h.keys, 0, l->id_of[1], &c);
	claim_own(w, h.hashes, 0, l->id_of[1], &c);
	/* A set has its keys as values. */
	claim_own(w, h.values, 0, l->id_of[1], &c);
	arrays = c.bytes - arrays;
	c.unused = arrays / h.size * (h.size - h.nodes);
	dwarf_add(w, l, &c);
}

const struct dwarf_container container_ghash = {know_ghash, NULL, take_ghash};
