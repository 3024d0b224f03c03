/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Blocks that are free though their headers say in use: in the tcaches of threads and in the
 * fastbins of arenas.  Since 2.32 their links are mangled with the address they are stored at
 * (safe-linking); which it is, the chains themselves tell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/glibc.h"

#define TCACHE_BINS   64
#define TLS_SEARCH    (64u << 10) /* bytes of static TLS below the thread pointer */
#define MAX_ODD_BINS  2		  /* a thread may stand in the middle of malloc() */
#define MAX_CHAIN     (1u << 24)
#define ENTRIES_CHARS 64  /* 2.26 to 2.29: counts are bytes */
#define ENTRIES_SHORT 128 /* since 2.30 */

struct tcache {
	uint64_t addr;
	uint64_t entry[TCACHE_BINS];
	uint16_t count[TCACHE_BINS];
};

struct cache {
	struct glibc *g;
	VEC(struct tcache) tcaches;
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

/* Usable bytes of the blocks in a bin: chunks of 32, 48, ... bytes, less 8. */
static bool in_bin(const struct glibc *g, uint64_t addr, unsigned int bin)
{
	const struct heap_block *b = find_block(g, addr);

	return b && b->size == CHUNK_MIN + 16ull * bin - 8;
}

/* One struct tcache_perthread_struct, if the block at @addr is one. */
static bool read_tcache(struct glibc *g, uint64_t addr, struct tcache *t)
{
	const struct heap_block *b = find_block(g, addr);
	uint8_t raw[ENTRIES_SHORT + 8 * TCACHE_BINS];
	size_t entries;
	int odd = 0;

	/* A remainder too small to split off stays with it: 16 bytes more. */
	if (b && (b->size == 0x288 || b->size == 0x298))
		entries = ENTRIES_SHORT;
	else if (b && (b->size == 0x248 || b->size == 0x258))
		entries = ENTRIES_CHARS;
	else
		return false;
	if (!image_read_all(g->img, addr, raw, entries + 8 * TCACHE_BINS))
		return false;
	t->addr = addr;
	memcpy(t->entry, raw + entries, sizeof(t->entry));
	for (unsigned int i = 0; i < TCACHE_BINS; i++) {
		if (entries == ENTRIES_SHORT)
			memcpy(&t->count[i], raw + 2ull * i, 2);
		else
			t->count[i] = raw[i];
		odd += !t->count[i] != !t->entry[i] || (t->entry[i] && !in_bin(g, t->entry[i], i));
	}
	return odd <= MAX_ODD_BINS;
}

static uint64_t follow(uint64_t at, uint64_t stored, bool mangled)
{
	return mangled ? stored ^ at >> 12 : stored;
}

/*
 * Walks one chain of user addresses of @bin, adding them to the cached ones if @record.
 * @max: no longer than this.  Return: true if it ends as a chain must.
 */
static bool chain(struct glibc *g, uint64_t at, unsigned int bin, uint32_t max, uint32_t link,
		  bool mangled, bool record)
{
	for (uint32_t n = 0; at; n++) {
		uint64_t stored;

		if (n >= max || !in_bin(g, at, bin) || !image_word(g->img, at, &stored))
			return false;
		if (record && vec_push(&g->cached, at))
			return false;
		at = follow(at, stored, mangled);
		if (at)
			at += link;
	}
	return true;
}

/* A chain that was to be recorded does not end well: what is left of it counts as live. */
static bool settled(struct glibc *g, bool good, bool record)
{
	if (record && !good)
		heap_doubt(g->heap, "a tcache or fastbin is damaged, or a thread is just in it");
	return good;
}

/* Bins whose chains end well, with links read plainly or mangled.  Fastbins link chunks, tcaches
 * user addresses. */
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
						chain(c->g, a->fastbin[i] + CHUNK_HEADER, i,
						      MAX_CHAIN, CHUNK_HEADER, mangled, record),
						record);
		}
	}
	return good;
}

/* Pointers to tcaches among the thread-local variables of one thread. */
static int search_tls(struct cache *c, uint64_t tls)
{
	const struct image_map *m = tls ? image_map_at(c->g->img, tls - 8) : NULL;
	uint64_t start, *word;
	size_t n;
	int ret = 0;

	if (!m)
		return 0;
	start = tls - m->start > TLS_SEARCH ? tls - TLS_SEARCH : (m->start + 7) & ~7ull;
	word = malloc(TLS_SEARCH);
	if (!word)
		return -ENOMEM;
	n = image_read(c->g->img, start, word, (size_t)(tls - start)) / 8;
	/* libc's variables are nearest to the thread pointer, or behind the program's. */
	while (n-- > 0 && !ret) {
		struct tcache t;

		if (!read_tcache(c->g, word[n], &t))
			continue;
		ret = vec_push(&c->tcaches, t);
		break;
	}
	free(word);
	return ret;
}

/* A thread whose registers are not known: its tcache is a block that can be nothing else. */
static int search_blocks(struct cache *c)
{
	for (size_t i = 0; i < c->g->heap->blocks.n; i++) {
		unsigned int used = 0;
		struct tcache t;

		if (!read_tcache(c->g, c->g->heap->blocks.at[i].addr, &t))
			continue;
		for (unsigned int k = 0; k < TCACHE_BINS; k++)
			used += t.count[k] != 0;
		if (used > MAX_ODD_BINS && vec_push(&c->tcaches, t))
			return -ENOMEM;
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Both lists are sorted by address. */
static void subtract(struct glibc *g)
{
	size_t keep = 0, k = 0;

	qsort(g->cached.at, g->cached.n, sizeof(g->cached.at[0]), ascending);
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
	struct cache c = {.g = g};
	bool blind = false;
	int ret = 0;

	vec_for_each (&g->img->threads, th) {
		blind |= !th->tls;
		ret = ret ? ret : search_tls(&c, th->tls);
	}
	if (!ret && blind)
		ret = search_blocks(&c);
	if (ret)
		goto out;
	c.mangled = try_chains(&c, true, false) >= try_chains(&c, false, false);
	try_chains(&c, c.mangled, true);
	vec_for_each (&c.tcaches, t) {
		g->heap->metadata_bytes += sizeof(t->entry) + sizeof(t->count);
		if (vec_push(&g->cached, t->addr))
			ret = -ENOMEM;
	}
	if (g->cached.n)
		subtract(g);
out:
	vec_free(&c.tcaches);
	return ret;
}
