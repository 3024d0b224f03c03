/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds blocks that are free although their headers say in use: in the tcaches of threads and in
 * the fastbins of arenas.  Since 2.32 their links are mangled with the address at which they are
 * stored (safe-linking).  Whether they are is found out by following the chains both ways.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/chain.h"
#include "heaps/glibc/glibc.h"
#include "lib/by_number.h"

#define TLS_SEARCH   (64u << 10) /* bytes of static TLS next to the thread pointer */
#define MAX_ODD_BINS 2		 /* a thread can be in the middle of malloc() */
#define MAX_LOOSE    (1u << 22)

struct tcache {
	uint64_t addr;
	uint64_t entry[TCACHE_BINS];
	uint16_t count[TCACHE_BINS];
};

struct cache {
	struct glibc *g;
	VEC(struct tcache) tcaches;
	uint32_t links; /* of loose chains, left to follow: each word can lead to a long one */
	bool mangled;
};

static const struct heap_block *find_block(const struct glibc *g, uint64_t addr)
{
	size_t lo = 0, hi = g->heap->blocks.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (g->heap->blocks.at[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->heap->blocks.n && g->heap->blocks.at[lo].addr == addr
		   ? &g->heap->blocks.at[lo]
		   : NULL;
}

/* Does the usable size match the bin?  Bins are for chunks of 32, 48, ... bytes, minus a word. */
static bool in_bin(const struct glibc *g, uint64_t addr, unsigned int bin)
{
	const struct heap_block *b = find_block(g, addr);

	return b && b->size == g->l->chunk_min + (uint64_t)g->l->align * bin - g->l->word;
}

/* Does the size of @b match a tcache with its entries at @entries?  A remainder too small to be
 * split off stays part of the block. */
static bool is_size(const struct glibc *g, const struct heap_block *b, uint32_t entries)
{
	uint64_t need = entries + (uint64_t)g->l->word * TCACHE_BINS + g->l->word;
	uint64_t chunk = (need + g->l->align - 1) & ~(uint64_t)(g->l->align - 1);

	return b->size == chunk - g->l->word || b->size == chunk + g->l->align - g->l->word;
}

/* Reads a struct tcache_perthread_struct, if the block at @addr can be one: at most @max_odd of its
 * bins are inconsistent. */
static bool read_tcache(struct glibc *g, uint64_t addr, int max_odd, struct tcache *t)
{
	const struct heap_block *b = find_block(g, addr);
	uint8_t raw[(2 + sizeof(uint64_t)) * TCACHE_BINS];
	bool shorts = b && is_size(g, b, g->l->tcache_entries[1]);
	uint32_t entries = g->l->tcache_entries[shorts];
	int odd = 0;

	if (!b || (!shorts && !is_size(g, b, entries)) ||
	    !image_read_all(g->img, addr, raw, entries + g->l->word * TCACHE_BINS))
		return false;
	t->addr = addr;
	for (unsigned int i = 0; i < TCACHE_BINS; i++) {
		t->entry[i] = glibc_word(g, raw, entries + i * g->l->word);
		if (shorts)
			memcpy(&t->count[i], raw + 2ull * i, 2);
		else
			t->count[i] = raw[i];
		odd += !t->count[i] != !t->entry[i] || (t->entry[i] && !in_bin(g, t->entry[i], i));
	}
	return odd <= max_odd;
}

static uint64_t follow(uint64_t at, uint64_t stored, bool mangled)
{
	return mangled ? stored ^ at >> 12 : stored;
}

/*
 * Walks a chain of user addresses of @bin, and adds them to the cached ones if @record.
 * @max: the longest chain accepted.  Return: true if it ends properly.
 */
static bool chain(struct glibc *g, uint64_t at, unsigned int bin, uint32_t max, uint32_t link,
		  bool mangled, bool record)
{
	struct chain c = {0};

	for (uint32_t n = 0; at; n++) {
		uint64_t stored;

		if (n >= max || chain_cycles(&c, at) || !in_bin(g, at, bin) ||
		    !image_word(g->img, at, &stored))
			return false;
		if (record && vec_push(&g->cached, at))
			return false;
		at = follow(at, stored, mangled);
		if (at)
			at += link;
	}
	return true;
}

/* Notes a recorded chain that does not end properly: the blocks behind the fault count as live. */
static bool settled(struct glibc *g, bool good, bool record)
{
	if (record && !good)
		heap_doubt_now(g->heap,
			       "a tcache or fastbin is damaged, or a thread was changing it");
	return good;
}

/* Return: the number of bins whose chains end properly, with the links read plain or mangled.
 * Fastbins link chunks, tcaches user addresses. */
static size_t try_chains(struct cache *c, bool mangled, bool record)
{
	size_t good = 0;

	vec_for_each (&c->tcaches, t) {
		for (unsigned int i = 0; i < TCACHE_BINS; i++) {
			if (t->count[i] || t->entry[i])
				good += settled(c->g,
						t->count[i] && t->entry[i] &&
						    chain(c->g, t->entry[i], i, t->count[i] + 1u, 0,
							  mangled, record),
						record);
		}
	}
	vec_for_each (&c->g->arenas, a) {
		for (unsigned int i = 0; i < NUM_FASTBINS; i++) {
			if (a->fastbin[i])
				good += settled(c->g,
						chain(c->g, a->fastbin[i] + c->g->l->header, i,
						      UINT32_MAX, c->g->l->header, mangled, record),
						record);
		}
	}
	return good;
}

/* The range of the thread-local variables of a thread with thread pointer @tp. */
static bool tls_range(const struct image *img, uint64_t tp, uint64_t *start, uint64_t *end)
{
	const uint64_t mask = img->arch->word_size - 1u;
	const struct image_map *m;

	if (!tp)
		return false;
	tp -= img->arch->tls.bias;
	m = image_map_at(img, img->arch->tls.above ? tp : tp - 1);
	if (!m)
		return false;
	*start = tp - m->start > TLS_SEARCH ? tp - TLS_SEARCH : (m->start + mask) & ~mask;
	*end = tp;
	if (img->arch->tls.above) {
		*start = tp;
		*end = m->end - tp > TLS_SEARCH ? tp + TLS_SEARCH : m->end;
	}
	return true;
}

/* Searches the thread-local variables of one thread for the pointer to its tcache. */
static int search_tls(struct cache *c, uint64_t tp)
{
	const struct image *img = c->g->img;
	const uint32_t word = c->g->l->word;
	uint64_t start, end;
	uint8_t *buf;
	size_t n;
	int ret = 0;

	if (!tls_range(img, tp, &start, &end))
		return 0;
	buf = malloc(TLS_SEARCH);
	if (!buf)
		return -ENOMEM;
	n = image_read(c->g->img, start, buf, (size_t)(end - start)) / word;
	/* Below the thread pointer, libc's variables are nearest to it, or after the program's. */
	for (size_t i = 0; i < n && !ret; i++) {
		size_t at = img->arch->tls.above ? i : n - 1 - i;
		struct tcache t;

		if (!read_tcache(c->g, glibc_word(c->g, buf, (uint64_t)at * word), MAX_ODD_BINS,
				 &t))
			continue;
		ret = vec_push(&c->tcaches, t);
		break;
	}
	free(buf);
	return ret;
}

/* Finds the tcaches of threads without known registers: blocks that can be nothing else. */
static int search_blocks(struct cache *c)
{
	for (size_t i = 0; i < c->g->heap->blocks.n; i++) {
		unsigned int used = 0;
		struct tcache t;

		if (!read_tcache(c->g, c->g->heap->blocks.at[i].addr, MAX_ODD_BINS, &t))
			continue;
		for (unsigned int k = 0; k < TCACHE_BINS; k++)
			used += t.count[k] != 0;
		if (used > MAX_ODD_BINS && vec_push(&c->tcaches, t))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Follows a chain of chunks that malloc_consolidate() has detached from a fastbin.  Trusts only the
 * chunks' headers, since their neighbours might be half merged.  Return: number of chunks of the
 * same size, if the chain ends properly; else 0, though some may have been recorded.
 */
static uint32_t loose_chain(struct cache *cache, uint64_t at)
{
	struct glibc *g = cache->g;
	uint64_t size = 0, stored;
	struct chain seen = {0};
	struct chunk c;

	for (uint32_t n = 0; cache->links; n++, cache->links--) {
		if (at % g->l->align || chain_cycles(&seen, at) || !glibc_chunk_alone(g, at, &c))
			return 0;
		size = size ? size : c.size & ~(uint64_t)SIZE_BITS;
		if ((c.size & ~(uint64_t)SIZE_BITS) != size || size < g->l->chunk_min ||
		    size >= g->l->chunk_min + (uint64_t)g->l->align * NUM_FASTBINS ||
		    !image_word(g->img, at + g->l->header, &stored))
			return 0;
		if (vec_push(&g->cached, at + g->l->header))
			return 0;
		at = follow(at + g->l->header, stored, cache->mangled);
		if (!at)
			return n + 1;
	}
	return 0;
}

/* Finds the tcache of an exiting thread.  While glibc frees its blocks nothing else points to it,
 * and its counts are not updated. */
static int take_ending_tcache(void *ctx, uint64_t addr)
{
	struct cache *c = ctx;
	struct tcache t;
	unsigned int used = 0;

	vec_for_each (&c->tcaches, known) {
		if (known->addr == addr)
			return 0;
	}
	if (!read_tcache(c->g, addr, TCACHE_BINS, &t))
		return 0;
	for (unsigned int i = 0; i < TCACHE_BINS; i++) {
		if (t.entry[i] && (!t.count[i] || !in_bin(c->g, t.entry[i], i)))
			return 0;
		used += t.entry[i] != 0;
	}
	return used ? vec_push(&c->tcaches, t) : 0;
}

/* A single chunk is the one that the thread is working on, which can also become a block. */
static int take_loose(void *ctx, uint64_t word)
{
	struct cache *c = ctx;
	size_t before = c->g->cached.n;

	if (loose_chain(c, word) <= 1)
		c->g->cached.n = before;
	return 0;
}

static int for_each_inside(struct cache *c, int (*take)(void *ctx, uint64_t word))
{
	vec_for_each (&c->g->img->threads, th) {
		int ret = glibc_thread_inside(c->g, th) ? glibc_inside_words(c->g, th, take, c) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

/* Removes the cached blocks from the list.  Both are sorted by address. */
static void subtract(struct glibc *g)
{
	size_t keep = 0, k = 0;

	vec_sort(&g->cached, by_number);
	for (size_t i = 0; i < g->heap->blocks.n; i++) {
		struct heap_block b = g->heap->blocks.at[i];

		while (k < g->cached.n && g->cached.at[k] < b.addr)
			k++;
		if (k < g->cached.n && g->cached.at[k] == b.addr)
			g->heap->cached_bytes += b.size;
		else
			g->heap->blocks.at[keep++] = b;
	}
	g->heap->blocks.n = keep;
}

int glibc_take_cached(struct glibc *g)
{
	struct cache c = {.g = g, .links = MAX_LOOSE};
	bool blind = false;
	int ret = 0;

	vec_for_each (&g->img->threads, th) {
		blind |= !th->tls;
		ret = ret ? ret : search_tls(&c, th->tls);
	}
	if (!ret && blind)
		ret = search_blocks(&c);
	if (!ret)
		ret = for_each_inside(&c, take_ending_tcache);
	if (ret)
		goto out;
	c.mangled = try_chains(&c, true, false) >= try_chains(&c, false, false);
	try_chains(&c, c.mangled, true);
	ret = for_each_inside(&c, take_loose);
	vec_for_each (&c.tcaches, t) {
		g->heap->metadata_bytes += (2ull + g->l->word) * TCACHE_BINS;
		if (vec_push(&g->cached, t->addr))
			ret = -ENOMEM;
	}
	if (g->cached.n)
		subtract(g);
out:
	vec_free(&c.tcaches);
	return ret;
}
