/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/huge.h"

#define BUFFER	   (1u << 20)
#define MAX_GAP	   (64u << 10) /* most bytes between blocks that are read together */
#define SPARSE_MIN (1u << 20)  /* of larger blocks, only touched pages are read */
#define PAGE	   4096u

/* Is one root of a block enough? */
static bool one_root(const struct scan *s)
{
	return !s->graph->detailed || s->root.kind == ROOT_MEMORY || s->root.kind == ROOT_CODE;
}

/* Is the block known as one that has a root, or an exact one, in this area?  Notes that it is. */
static bool rooted_already(struct graph *g, uint32_t block, bool exact)
{
	uint64_t *const rooted = exact ? g->rooted_exactly : g->rooted, bit = 1ull << block % 64;
	const bool already = rooted[block / 64] & bit;

	g->rooted[block / 64] |= bit;
	rooted[block / 64] |= bit;
	return already;
}

static void add_root(struct scan *s, uint32_t block, uint64_t at, bool exact)
{
	struct graph *g = s->graph;
	struct root r = s->root;

	if (one_root(s) && rooted_already(g, block, exact))
		return;
	r.block = block;
	r.addr = at;
	r.exact = exact;
	if (vec_push(&g->roots, r))
		s->failed = true;
}

void scan_begin(struct scan *s, struct root root)
{
	struct graph *g = s->graph;

	if (scan_flush(s))
		return;
	if (g->detailed) {
		for (size_t i = g->area; i < g->roots.n; i++) {
			const uint32_t block = g->roots.at[i].block;

			g->rooted[block / 64] &= ~(1ull << block % 64);
			g->rooted_exactly[block / 64] &= ~(1ull << block % 64);
		}
		g->area = g->roots.n;
	}
	s->root = root;
}

static void set_first(struct scan *s, uint32_t from)
{
	while (s->done <= from)
		s->graph->first[s->done++] = (uint32_t)s->graph->to.n;
}

/* Notes that edge @e is exact. */
static void set_exact(struct scan *s, size_t e)
{
	struct graph *g = s->graph;

	while (g->exact.n <= e / 64) {
		if (vec_push(&g->exact, 0)) {
			s->failed = true;
			return;
		}
	}
	g->exact.at[e / 64] |= 1ull << e % 64;
}

/* Is it the address of the start of block @to?  Reading that from the list costs a cache miss, so
 * it is avoided where the index is sufficient. */
static bool is_start(const struct graph *g, const struct scan_pending *p, uint32_t to)
{
	if (p->tagged || !(p->record->starts >> (p->value >> 4 & 63) & 1))
		return false;
	return !(p->value & 15 || p->record->dense) || g->block[to].addr == p->value;
}

static void add_edge(struct scan *s, const struct scan_pending *p)
{
	struct graph *g = s->graph;
	uint32_t to = index_in(&g->index, p->record, p->value);
	bool exact;

	/* With tag bits, accepts only addresses of a block's very start: a number is not that by
	 * chance. */
	if (p->tagged && to != INDEX_NONE) {
		if (g->block[to].addr != (p->value & ~7ull))
			return;
		s->graph->tagged_words++;
	}
	exact = g->detailed && to != INDEX_NONE && is_start(g, p, to);
	if (p->from == INDEX_NONE) {
		if (to != INDEX_NONE)
			add_root(s, to, p->at, exact);
		return;
	}
	set_first(s, p->from);
	if (to == INDEX_NONE || to == p->from)
		return;
	/* A repeated edge to the same block is left out. */
	if ((g->to.n <= g->first[p->from] || g->to.at[g->to.n - 1] != to) &&
	    (g->to.n == UINT32_MAX || vec_push(&g->to, to)))
		s->failed = true;
	else if (exact)
		set_exact(s, g->to.n - 1);
}

/* @value is between the first and the last block. */
static inline void enqueue(struct scan *s, uint64_t value, bool tagged, uint64_t addr,
			   uint32_t from)
{
	const struct index_record *r = index_record(&s->graph->index, value);
	struct scan_pending *p;

	if (!r)
		return;
	__builtin_prefetch(r);
	p = &s->queue[s->head % SCAN_QUEUE];
	if (s->count == SCAN_QUEUE)
		add_edge(s, p);
	else
		s->count++;
	*p = (struct scan_pending){value, addr, r, from, tagged};
	s->head++;
}

static void scan_wide(struct scan *s, const uint64_t *word, size_t n, uint64_t addr, uint32_t from)
{
	const struct index *x = &s->graph->index;
	const uint64_t mask = (1ull << x->address_bits) - 1;

	for (size_t i = 0; i < n; i++) {
		uint64_t value = word[i] & mask;

		if (value - x->low < x->span)
			enqueue(s, value, word[i] > mask, addr + 8 * i, from);
	}
}

/* 32-bit addresses have no room for tags. */
static void scan_narrow(struct scan *s, const uint32_t *word, size_t n, uint64_t addr,
			uint32_t from)
{
	const struct index *x = &s->graph->index;

	for (size_t i = 0; i < n; i++) {
		if (word[i] - x->low < x->span)
			enqueue(s, word[i], false, addr + 4 * i, from);
	}
}

void scan_words(struct scan *s, const void *words, size_t n, uint64_t addr, uint32_t from)
{
	if (s->graph->arch->word_size == 4)
		scan_narrow(s, words, n, addr, from);
	else
		scan_wide(s, words, n, addr, from);
}

void scan_value(struct scan *s, uint64_t value, uint64_t addr)
{
	uint32_t narrow = (uint32_t)value;

	if (s->graph->arch->word_size == 4)
		scan_narrow(s, &narrow, 1, addr, INDEX_NONE);
	else
		scan_wide(s, &value, 1, addr, INDEX_NONE);
}

void scan_unaligned(struct scan *s, const uint8_t *bytes, size_t n, uint64_t addr)
{
	const struct index *x = &s->graph->index;
	uint64_t value;

	for (size_t i = 0; i < n; i++) {
		memcpy(&value, bytes + i, sizeof(value));
		if (value - x->low < x->span)
			enqueue(s, value, false, addr + i, INDEX_NONE);
	}
}

int scan_flush(struct scan *s)
{
	while (s->count) {
		add_edge(s, &s->queue[(s->head - s->count) % SCAN_QUEUE]);
		s->count--;
	}
	return s->failed ? -ENOMEM : 0;
}

/* Scans the words of block @i between @start and @end.  @buf has the bytes from @base on. */
static void scan_part(struct scan *s, uint32_t i, const uint8_t *buf, uint64_t base, uint64_t start,
		      uint64_t end)
{
	const struct heap_block *b = &s->graph->block[i];
	uint64_t from = b->addr > start ? b->addr : start, to = b->addr + b->size;
	const unsigned int word = s->graph->arch->word_size;

	from = (from + word - 1) & ~(uint64_t)(word - 1);
	if (to > end)
		to = end;
	if (to >= from + word)
		scan_words(s, buf + (from - base), (size_t)((to - from) / word), from, i);
}

/* Scans a large block, touched pages only. */
static void scan_large(struct scan *s, struct image *img, uint8_t *buf, uint32_t i)
{
	const struct heap_block *b = &s->graph->block[i];
	const struct image_map *m = image_map_at(img, b->addr);
	uint64_t at = b->addr & ~7ull, end = b->addr + b->size;

	while (at < end) {
		uint64_t run = m ? image_present(img, m, &at) : end;

		if (!run) {
			at = m->end; /* a block can extend into the next map */
			m = at < end ? image_map_at(img, at) : NULL;
			if (!m)
				return;
			continue;
		}
		while (at < run && at < end) {
			uint64_t want = (run < end ? run : end) - at;
			size_t got = image_read(img, at, buf, want < BUFFER ? want : BUFFER);

			s->graph->block_bytes += got;
			scan_part(s, i, buf, at, at, at + got);
			if (!got) {
				s->graph->unreadable_bytes += PAGE;
				got = PAGE - at % PAGE;
			}
			at += got;
		}
		m = image_map_at(img, at);
	}
}

/* Scans small blocks near each other from @i on.  Return: the first block that was not scanned. */
static uint32_t scan_small(struct scan *s, struct image *img, uint8_t *buf, uint32_t i)
{
	const struct heap_block *b = s->graph->block;
	uint64_t base = b[i].addr & ~7ull, end = base;
	uint32_t j = i;
	size_t got;

	while (j < s->graph->n && b[j].size < SPARSE_MIN && b[j].addr - end < MAX_GAP &&
	       b[j].addr + b[j].size - base <= BUFFER) {
		end = b[j].addr + b[j].size;
		j++;
	}
	got = image_read(img, base, buf, (size_t)(end - base));
	s->graph->block_bytes += got;
	for (uint32_t k = i; k < j; k++) {
		if (b[k].addr >= base + got) {
			/* The bytes end before this block: the blocks behind the hole need another
			 * read. */
			if (k == i) {
				s->graph->unreadable_bytes += b[k].size;
				return k + 1;
			}
			return k;
		}
		scan_part(s, k, buf, base, base, base + got);
	}
	return j;
}

int graph_edges(struct graph *g, struct image *img, struct mp_err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	/* A block of just less than SPARSE_MIN can start up to 7 bytes after the base. */
	uint8_t *buf = malloc(BUFFER + 64);
	size_t room = 0;
	uint32_t i = 0;
	int ret = -ENOMEM;

	if (s && buf) {
		s->graph = g;
		while (i < g->n && !s->failed) {
			if (g->to.cap != room) {
				room = g->to.cap;
				huge_pages(g->to.at, room * sizeof(*g->to.at));
			}
			if (g->block[i].size >= SPARSE_MIN)
				scan_large(s, img, buf, i++);
			else
				i = scan_small(s, img, buf, i);
		}
		ret = scan_flush(s);
		set_first(s, g->n);
	}
	free(buf);
	free(s);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the graph of %u blocks",
			     g->n)
		   : 0;
}
