/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Arrays of pointers, in blocks and in variables.  If they lead to the beginnings of chains, or all
 * into one chain, they are hash tables.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "leaks/types/shape.h"

#define LEAST	       8  /* pointers of a hash table */
#define LEAST_ARRAY    16 /* and of an array */
#define MAX_HEADER     4  /* words before the first pointer */
#define MAX_GAP	       64 /* words between two pointers of a variable */
#define SPARSEST       64 /* words for each pointer */
#define MAX_PER_BUCKET 16
#define AHEAD	       16

struct table {
	struct shapes *s;
	uint64_t addr, words;
	uint16_t kind;
	uint32_t delta; /* of the pointers, in the blocks that they lead to */
	VEC(uint32_t) to;
	uint64_t first, last; /* words with a pointer */
	uint64_t strangers;   /* pointers to blocks of other kinds that might be of the same type */
	/* Words that are neither zero nor such a pointer: before, between, after the pointers. */
	uint64_t before, between, after;
};

/* Can the block be of the table's kind?  If nodes differ in size, those without a link to others have
 * kinds of their own. */
static bool is_element(const struct table *t, uint32_t block)
{
	const struct shapes *s = t->s;

	return s->block[block].kind == t->kind || shape_odd(s, t->kind, block) ||
	       shape_misnamed(s, t->kind, block) ||
	       (s->kinds.at[t->kind].varied && !block_names_has(s->n, block));
}

static void take_word(struct table *t, uint64_t i, uint64_t word, int *ret)
{
	const struct graph *g = t->s->g;
	const uint32_t to = word ? index_find(&g->index, word) : INDEX_NONE;
	uint64_t delta = 0;
	bool is = to != INDEX_NONE && is_element(t, to);

	if (is) {
		delta = word - g->block[to].addr;
		if (!t->to.n && delta < SHAPE_OFFSETS)
			t->delta = (uint32_t)delta;
		is = delta == t->delta;
	}
	if (is) {
		if (!t->to.n)
			t->first = i;
		t->last = i;
		t->between += t->after;
		t->after = 0;
		t->strangers += t->s->block[to].kind != t->kind;
		*ret = *ret ? *ret : vec_push(&t->to, to);
	} else if (word) {
		t->before += !t->to.n;
		t->after += t->to.n != 0;
	}
}

/* Reads all words.  Return: 0 or -ENOMEM. */
static int read_table(struct table *t, struct image_view *view)
{
	const struct arch *arch = t->s->g->arch;
	const uint64_t step = IMAGE_VIEW_SIZE / arch->word_size;
	int ret = 0;

	t->to.n = 0;
	t->first = t->last = t->before = t->between = t->after = t->strangers = 0;
	t->delta = 0;
	for (uint64_t i = 0; i < t->words && !ret; i += step) {
		const uint64_t n = t->words - i < step ? t->words - i : step;
		const uint8_t *p = image_view(t->s->img, view, t->addr + i * arch->word_size,
					      (size_t)(n * arch->word_size));

		for (uint64_t j = 0; j < n && p && !ret; j++) {
			if (j + AHEAD < n)
				__builtin_prefetch(index_record(
				    &t->s->g->index,
				    arch_word(arch, p + (j + AHEAD) * arch->word_size)));
			take_word(t, i + j, arch_word(arch, p + j * arch->word_size), &ret);
		}
		/* What cannot be read is no pointer. */
		t->after += p ? 0 : n;
	}
	return ret;
}

static bool is_table(const struct table *t)
{
	return t->to.n >= LEAST && t->before <= MAX_HEADER && t->between * 10 <= t->to.n &&
	       t->after * 2 <= t->words && t->to.n * (uint64_t)SPARSEST >= t->words;
}

/* ------------------------------------------------------------- hash tables -- */

static struct shape_chain *chain_of(const struct table *t, uint8_t slot, uint32_t block)
{
	const struct shapes *s = t->s;
	const struct shape_block *b = &s->block[block];

	return b->kind == t->kind && b->done >> slot & 1 ? &s->chains.at[s->link[slot][block] - 1]
							 : NULL;
}

/* Return: the block that the table's slot of @block leads to, whatever its kind; or INDEX_NONE. */
static uint32_t next_of(const struct table *t, const struct shape_slot *slot, uint32_t block)
{
	const struct graph *g = t->s->g;
	uint64_t word;
	uint32_t to;

	if (slot->offset + (uint64_t)g->arch->word_size > g->block[block].size ||
	    !image_word(t->s->img, g->block[block].addr + slot->offset, &word))
		return INDEX_NONE;
	to = index_find(&g->index, word);
	return to != INDEX_NONE && to != block && g->block[to].addr + slot->delta == word
		   ? to
		   : INDEX_NONE;
}

/* Follows what begins at @block, where no chain begins: a block without links, or of another size,
 * which can lead to a chain; or the middle of a chain that begins with an old value elsewhere.  @name:
 * if it is not 0, names and takes it.  Return: the number of blocks, with *@bytes increased. */
static uint64_t follow(const struct table *t, uint8_t p, uint32_t block, uint32_t name,
		       uint64_t *bytes)
{
	const struct shape_slot *slot = shape_slot_of(t->s, t->kind, p);
	uint64_t n = 0;

	for (int i = 0; i < MAX_PER_BUCKET && block != INDEX_NONE; i++) {
		struct shape_chain *c = chain_of(t, p, block);
		const bool whole = c && c->head == block;

		if (c && c->taken)
			break;
		n += whole ? c->length : 1;
		*bytes += whole ? c->bytes : t->s->g->block[block].size;
		if (whole && name)
			c->taken = true;
		else if (name)
			block_names_set(t->s->n, block, name);
		if (whole || (!c && t->s->block[block].kind == t->kind))
			break;
		block = next_of(t, slot, block);
	}
	return n;
}

/* Can @c be the chain of a bucket that has the address of @block? */
static bool begins(const struct table *t, uint8_t slot, const struct shape_chain *c, uint32_t block)
{
	/* Lists with ways back can be linked from their last block on, too. */
	return c && !c->taken && !c->ring &&
	       (c->head == block ||
		(c->tail == block && shape_slot_of(t->s, t->kind, slot)->role == ROLE_NEXT));
}

/* Do the pointers lead to the beginnings of chains? */
static bool are_chains(const struct table *t, uint8_t slot)
{
	const struct shape_slot *is = shape_slot_of(t->s, t->kind, slot);
	uint64_t good = 0, several = 0;

	/* What no other block of its kind follows is a value of an entry, not the next entry. */
	if (is->delta != t->delta || is->onward[slot] * 100ull < is->links)
		return false;
	vec_for_each (&t->to, to) {
		const struct shape_chain *c = chain_of(t, slot, *to);

		several += begins(t, slot, c, *to);
		good += begins(t, slot, c, *to) || (!c && (t->s->block[*to].kind != t->kind ||
							   !(t->s->block[*to].mark >> slot & 1)));
	}
	return good * 20 >= t->to.n * 19ull && several >= 2 && several * 32 >= t->to.n;
}

/* Do the pointers lead into one long chain, as in libstdc++? */
static bool is_one_chain(const struct table *t, uint8_t slot)
{
	const struct shape_chain *one = chain_of(t, slot, t->to.at[t->to.n / 2]);
	uint64_t in = 0;

	if (!one || one->taken || one->length < t->to.n || one->length > t->words * MAX_PER_BUCKET)
		return false;
	vec_for_each (&t->to, to)
		in += chain_of(t, slot, *to) == one;
	return in * 20 >= t->to.n * 19ull;
}

/* Takes what the pointers lead to, each once: the one chain, or for @one NULL chains and blocks that are
 * a chain by themselves.  @name: of these.  Adds up elements and bytes in @c. */
static void take_chains(const struct table *t, uint8_t slot, struct shape_chain *one, uint32_t name,
			struct container *c)
{
	if (one) {
		one->taken = true;
		c->elements = one->length;
		c->bytes += one->bytes;
		return;
	}
	vec_for_each (&t->to, to) {
		struct shape_chain *of = chain_of(t, slot, *to);

		if (begins(t, slot, of, *to)) {
			of->taken = true;
			c->elements += of->length;
			c->bytes += of->bytes;
		} else if (!of || !of->taken) {
			c->elements += follow(t, slot, *to, name, &c->bytes);
		}
	}
}

/* The number of buckets is what was asked of malloc(), which can have given some more. */
static uint64_t buckets(const struct table *t)
{
	uint64_t power = 1;

	while (power * 2 <= t->words)
		power *= 2;
	return t->words - power <= 2 ? power : t->words;
}

static int add_hash(const struct table *t, uint32_t block, uint8_t slot, bool one)
{
	struct shapes *s = t->s;
	struct shape_slot *chains = shape_slot_of(s, t->kind, slot);
	const uint32_t table = block_names_id(s->n, "table of a hash table", NULL, NAME_SHAPE);
	struct container c = {
	    .name = shape_id(s, "hash table of %s", t->kind),
	    .addr = block == INDEX_NONE ? t->addr : 0,
	    .first = t->addr,
	    .bytes = block == INDEX_NONE ? 0 : s->g->block[block].size,
	    .buckets = buckets(t),
	};

	if (!chains->hashed)
		chains->hashed = shape_node_id(s, "node of a hash table", t->kind);
	if (!table || !c.name || !chains->hashed)
		return -ENOMEM;
	take_chains(t, slot, one ? chain_of(t, slot, t->to.at[t->to.n / 2]) : NULL, chains->hashed,
		    &c);
	c.blocks = c.elements + (block != INDEX_NONE);
	if (block != INDEX_NONE)
		block_names_set(s->n, block, table);
	return shape_add(s, &c, block, block);
}

/* ------------------------------------------------------------- one table -- */

static int add_array(const struct table *t, uint32_t block)
{
	struct shapes *s = t->s;
	const uint64_t size = block == INDEX_NONE ? 0 : s->g->block[block].size;
	const uint64_t used = (t->last + 1) * s->g->arch->word_size;
	struct container c = {
	    .name = shape_id(s, "array of pointers to %s", t->kind),
	    .addr = block == INDEX_NONE ? t->addr : 0,
	    .first = t->addr,
	    .elements = t->to.n,
	    .blocks = block != INDEX_NONE,
	    .bytes = size,
	};

	if (!c.name)
		return -ENOMEM;
	/* Two words more than what was asked for are no capacity. */
	if (size > used + 2u * s->g->arch->word_size && !t->after)
		c.unused = size - used;
	if (block != INDEX_NONE)
		block_names_set(s->n, block, c.name);
	return shape_add(s, &c, block, block);
}

/* Strangers are read one by one, so they have to be few. */
static bool may_follow(const struct table *t)
{
	if (t->strangers * 4 > t->to.n || t->strangers > t->s->reads)
		return false;
	t->s->reads -= (uint32_t)t->strangers;
	return true;
}

/* @block: that the table is, or INDEX_NONE */
static int add_table(struct table *t, uint32_t block)
{
	const struct shape_nodes *nodes = t->s->kinds.at[t->kind].nodes;

	if (!is_table(t))
		return 0;
	for (int pass = 0; pass < 2 && may_follow(t); pass++) {
		const enum shape_role role = pass ? ROLE_NEXT : ROLE_SINGLE;

		for (uint8_t p = 0; nodes && p < nodes->n; p++) {
			const bool is_next = nodes->slot[p].role == role;

			if (is_next && (are_chains(t, p) || is_one_chain(t, p)))
				return add_hash(t, block, p, !are_chains(t, p));
		}
	}
	return t->to.n >= LEAST_ARRAY && t->to.n * 8ull >= t->last - t->first + 1
		   ? add_array(t, block)
		   : 0;
}

/* ------------------------------------------------------------- all tables -- */

/* Return: the end of the roots from @i on that might be of one table: near each other, and to blocks of
 * one kind. */
static size_t run_end(const struct table *t, size_t i)
{
	const struct graph *g = t->s->g;
	const struct root *r = g->roots.at;
	size_t end = i + 1;

	while (end < g->roots.n && r[end].kind == ROOT_GLOBAL &&
	       t->s->block[r[end].block].kind == t->kind &&
	       r[end].addr - r[end - 1].addr <= MAX_GAP * (uint64_t)g->arch->word_size)
		end++;
	return end;
}

/* Tables in variables.  Roots of a module are in order of address. */
static int find_in_variables(struct table *t, struct image_view *view)
{
	const struct graph *g = t->s->g;
	const unsigned int word = g->arch->word_size;
	size_t run = 0;
	int ret = 0;

	for (size_t i = 0, end; i < g->roots.n && !ret; i = end) {
		const struct root *r = &g->roots.at[i];
		struct module_variable v;

		end = i + 1;
		t->kind = t->s->block[r->block].kind;
		if (r->kind != ROOT_GLOBAL || !t->kind)
			continue;
		if (i >= run)
			run = run_end(t, i);
		end = run;
		if (run - i < LEAST)
			continue;
		t->addr = r->addr;
		t->words = (g->roots.at[run - 1].addr - r->addr) / word + 1;
		if (modules_variable(t->s->m, r->addr, &v) && v.addr % word == 0 &&
		    r->addr - v.addr < v.size) {
			end = i + 1;
			while (end < run && g->roots.at[end].addr - v.addr < v.size)
				end++;
			t->addr = v.addr;
			t->words = v.size / word;
		}
		if (end - i < LEAST || t->words / SPARSEST > end - i)
			continue;
		ret = read_table(t, view);
		if (!ret)
			ret = add_table(t, INDEX_NONE);
	}
	return ret;
}

int shape_tables(struct shapes *s)
{
	struct image_view view = {0};
	struct table t = {.s = s};
	int ret = 0;

	for (size_t i = 0; i < s->arrays.n && !ret; i++) {
		const struct heap_block *b = &s->g->block[s->arrays.at[i].block];

		t.kind = s->arrays.at[i].kind;
		t.addr = b->addr;
		t.words = b->size / s->g->arch->word_size;
		/* A block of no kind is a part of a container that another source has found. */
		if (!s->block[s->arrays.at[i].block].kind || b->addr % s->g->arch->word_size)
			continue;
		ret = read_table(&t, &view);
		if (!ret)
			ret = add_table(&t, s->arrays.at[i].block);
	}
	if (!ret)
		ret = find_in_variables(&t, &view);
	image_view_free(&view);
	vec_free(&t.to);
	for (uint32_t i = 0; i < s->g->n && !ret; i++) {
		const struct shape_nodes *nodes = shape_nodes_of(s, i);

		for (uint8_t p = 0; nodes && p < nodes->n; p++) {
			if (nodes->slot[p].hashed && s->block[i].done >> p & 1 &&
			    s->chains.at[s->link[p][i] - 1].taken)
				block_names_set(s->n, i, nodes->slot[p].hashed);
		}
	}
	return ret;
}
