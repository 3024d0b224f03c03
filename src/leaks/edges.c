/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/edges.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/offsets.h"
#include "leaks/python/python.h"
#include "leaks/scan.h"
#include "lib/huge.h"
#include "lib/parallel.h"

#define BUFFER	   (1u << 20)
#define MAX_GAP	   (64u << 10) /* most bytes between blocks that are read together */
#define SPARSE_MIN (1u << 20)  /* of larger blocks, only touched pages are read */
#define PAGE	   4096u

static void scan_bytes(struct scan *s, uint32_t i, const uint8_t *buf, uint64_t base, uint64_t from,
		       uint64_t to)
{
	const unsigned int word = s->graph->arch->word_size;

	from = (from + word - 1) & ~(uint64_t)(word - 1);
	if (to >= from + word)
		scan_words(s, buf + (from - base), (size_t)((to - from) / word), from, i);
}

/* Scans the words of block @i between @start and @end.  @buf has the bytes from @base on. */
static void scan_part(struct scan *s, uint32_t i, const uint8_t *buf, uint64_t base, uint64_t start,
		      uint64_t end)
{
	const struct heap_block *b = &s->graph->block[i];
	uint64_t from = b->addr > start ? b->addr : start, to = b->addr + b->size;
	struct heap_range hidden[PYTHON_HIDDEN];
	unsigned int n = s->graph->python ? python_hidden(s->graph->python, i, hidden) : 0;

	if (to > end)
		to = end;
	for (unsigned int k = 0; k < n && from < to; k++) {
		scan_bytes(s, i, buf, base, from, hidden[k].start < to ? hidden[k].start : to);
		if (hidden[k].end > from)
			from = hidden[k].end;
	}
	scan_bytes(s, i, buf, base, from, to);
}

/* Some of the blocks, with edges of their own. */
struct share {
	struct scan scan;
	struct graph graph; /* numbers of edges begin with 0 */
	struct image img;
	uint8_t *buf;
	uint32_t begin, end;
	bool offsets;		  /* offsets_used() */
	pthread_mutex_t *present; /* image_present() is for one thread at a time */
};

static uint64_t present(struct share *sh, const struct image_map *m, uint64_t *at)
{
	uint64_t run;

	pthread_mutex_lock(sh->present);
	run = image_present(&sh->img, m, at);
	pthread_mutex_unlock(sh->present);
	return run;
}

/* Scans a large block, touched pages only. */
static void scan_large(struct share *sh, uint32_t i)
{
	const struct heap_block *b = &sh->graph.block[i];
	const struct image_map *m = image_map_at(&sh->img, b->addr);
	uint64_t at = b->addr & ~7ull, end = b->addr + b->size;

	while (at < end) {
		uint64_t run = m ? present(sh, m, &at) : end;

		if (!run) {
			at = m->end; /* a block can extend into the next map */
			m = at < end ? image_map_at(&sh->img, at) : NULL;
			if (!m)
				return;
			continue;
		}
		while (at < run && at < end) {
			uint64_t want = (run < end ? run : end) - at;
			size_t got =
			    image_read(&sh->img, at, sh->buf, want < BUFFER ? want : BUFFER);

			sh->graph.block_bytes += got;
			scan_part(&sh->scan, i, sh->buf, at, at, at + got);
			if (!got) {
				sh->graph.unreadable_bytes += PAGE;
				got = PAGE - at % PAGE;
			}
			at += got;
		}
		m = image_map_at(&sh->img, at);
	}
}

/* @base: address of the first byte in the buffer; @end: of the byte behind the last one. */
static void scan_offsets(struct share *sh, uint32_t i, uint64_t base, uint64_t end)
{
	const struct heap_block *b = &sh->graph.block[i];
	const uint64_t n = end - b->addr < b->size ? end - b->addr : b->size;

	offsets_scan(&sh->scan, &sh->img, i, sh->buf + (b->addr - base), (size_t)n);
}

/* Scans small blocks near each other from @i on.  Return: the first block that was not scanned. */
static uint32_t scan_small(struct share *sh, uint32_t i)
{
	const struct heap_block *b = sh->graph.block;
	uint64_t base = b[i].addr & ~7ull, end = base;
	uint32_t j = i;
	size_t got;

	while (j < sh->end && b[j].size < SPARSE_MIN && b[j].addr - end < MAX_GAP &&
	       b[j].addr + b[j].size - base <= BUFFER) {
		end = b[j].addr + b[j].size;
		j++;
	}
	got = image_read(&sh->img, base, sh->buf, (size_t)(end - base));
	sh->graph.block_bytes += got;
	for (uint32_t k = i; k < j; k++) {
		if (b[k].addr >= base + got) {
			/* The bytes end before this block: the blocks behind the hole need another
			 * read. */
			if (k == i) {
				sh->graph.unreadable_bytes += b[k].size;
				return k + 1;
			}
			return k;
		}
		scan_part(&sh->scan, k, sh->buf, base, base, base + got);
		if (sh->offsets)
			scan_offsets(sh, k, base, base + got);
	}
	return j;
}

static void scan_share(void *arg, unsigned int part)
{
	struct share *const sh = (struct share *)arg + part;
	struct graph *const g = &sh->graph;
	uint32_t i = sh->begin;
	size_t room = 0;

	while (i < sh->end && !sh->scan.failed) {
		if (g->to.cap != room) {
			room = g->to.cap;
			huge_pages(g->to.at, room * sizeof(*g->to.at));
		}
		if (g->block[i].size >= SPARSE_MIN)
			scan_large(sh, i++);
		else
			i = scan_small(sh, i);
	}
	scan_end(&sh->scan, sh->end);
}

static int begin_share(struct share *sh, const struct graph *g, const struct image *img,
		       uint32_t begin, uint32_t end)
{
	sh->img = *img;
	sh->img.bytes_read = 0;
	sh->graph = (struct graph){.arch = g->arch,
				   .block = g->block,
				   .n = g->n,
				   .index = g->index,
				   .first = g->first,
				   .python = g->python,
				   .detailed = g->detailed};
	sh->scan.graph = &sh->graph;
	sh->scan.done = sh->begin = begin;
	sh->end = end;
	/* A block of just less than SPARSE_MIN can start up to 7 bytes after the base. */
	sh->buf = malloc(BUFFER + 64);
	return sh->buf ? 0 : -ENOMEM;
}

/* Return: the number of blocks that have half of the bytes. */
static uint32_t half_of(const struct graph *g)
{
	uint64_t all = 0, sum = 0;
	uint32_t i = 0;

	for (uint32_t k = 0; k < g->n; k++)
		all += g->block[k].size;
	while (i < g->n && sum < all / 2)
		sum += g->block[i++].size;
	return i;
}

/* Appends the bits of the edges that follow the first @before ones. */
static int append_exact(struct graph *g, const struct graph *more, size_t before)
{
	const unsigned int shift = before % 64;

	if (more->exact.n && vec_reach(&g->exact, before / 64 + more->exact.n))
		return -ENOMEM;
	for (size_t i = 0; i < more->exact.n; i++) {
		const uint64_t bits = more->exact.at[i];

		g->exact.at[before / 64 + i] |= bits << shift;
		if (shift)
			g->exact.at[before / 64 + i + 1] |= bits >> (64 - shift);
	}
	return 0;
}

/* The first share's edges become those of the graph. */
static void take_over(struct graph *g, struct graph *from)
{
	vec_free(&g->to);
	vec_free(&g->exact);
	memcpy(&g->to, &from->to, sizeof(g->to));
	memcpy(&g->exact, &from->exact, sizeof(g->exact));
	memset(&from->to, 0, sizeof(from->to));
	memset(&from->exact, 0, sizeof(from->exact));
}

static int append_edges(struct graph *g, const struct graph *more)
{
	const size_t before = g->to.n, n = before + more->to.n;
	uint32_t *to;

	if (n > UINT32_MAX)
		return -E2BIG;
	if (!more->to.n)
		return 0;
	to = reallocarray(g->to.at, n, sizeof(*to));
	if (!to)
		return -ENOMEM;
	huge_move(to + before, more->to.at, more->to.n * sizeof(*to));
	g->to.at = to;
	g->to.n = g->to.cap = n;
	return append_exact(g, more, before);
}

/* Adds the edges of a share to those of the shares before it. */
static int join_share(struct graph *g, struct share *sh)
{
	const uint32_t before = (uint32_t)g->to.n;
	int ret = sh->scan.failed ? -ENOMEM : 0;

	g->block_bytes += sh->graph.block_bytes;
	g->unreadable_bytes += sh->graph.unreadable_bytes;
	g->tagged_words += sh->graph.tagged_words;
	if (!ret && before)
		ret = append_edges(g, &sh->graph);
	else if (!ret)
		take_over(g, &sh->graph);
	for (uint32_t i = sh->begin; before && i < sh->end; i++)
		g->first[i] += before;
	g->first[g->n] = (uint32_t)g->to.n;
	return ret;
}

int graph_edges(struct graph *g, struct image *img, struct mp_err *err)
{
	const unsigned int parts =
	    img->ops->parallel && g->n >= MIN_PARALLEL ? parallel_parts() : 1;
	const uint32_t half = parts > 1 ? half_of(g) : g->n;
	struct share *share = calloc(parts, sizeof(*share));
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const bool offsets = offsets_used(img);
	int ret = share ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < parts && !ret; i++) {
		share[i].present = &lock;
		share[i].offsets = offsets;
		ret = begin_share(&share[i], g, img, i ? half : 0, i ? g->n : half);
	}
	if (!ret)
		parallel_run(parts, scan_share, share);
	for (unsigned int i = 0; i < parts && share; i++) {
		if (!ret)
			ret = join_share(g, &share[i]);
		img->bytes_read += share[i].img.bytes_read;
		vec_free(&share[i].graph.to);
		vec_free(&share[i].graph.exact);
		free(share[i].buf);
	}
	free(share);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the graph of %u blocks",
			     g->n)
		   : 0;
}
