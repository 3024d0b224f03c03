/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds mimalloc 2's segments without symbols, by the cookie of the main heap.
 *
 * Layout: types.h, segment.c of 2.0.9, 2.1.2, 2.1.7 and 2.2.  Versions differ in where fields are,
 * and up to 2.1.2 in how far behind the start of its slices a page's first block is, on which
 * depends how many blocks a page has room for.  The layout is the one with which the pages of all
 * segments are consistent.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "heaps/mimalloc/mimalloc_2.h"
#include "heaps/scan.h"

#define SEGMENT_SIZE	(32ull << 20)
#define HEAD_BYTES	288	     /* the largest mi_segment_t without its pages */
#define HUGE_BLOCK	(2ull << 30) /* from this size on, the size of the page is used */
#define TLD_BACKING	16	     /* mi_tld_t.heap_backing */
#define THREAD_FLAGS	3ull	     /* low bits of page.thread_free */
#define MAX_HEAP_COOKIE 2864
#define VALID_FOR_ODD	16 /* at least so many consistent pages for one that is not */

static const struct mi2_layout layouts[] = {
    {
	.version = "2.0",
	.start_is = MI2_START_384,
	.used = 208,
	.slices = 224,
	.pages = 264,
	.page_bytes = 80,
	.page_used = 24,
	.page_block_size = 28,
	.page_local_free = 32,
	.page_thread_free = 40,
	.heap_delayed = 2840,
	.heap_cookie = MAX_HEAP_COOKIE,
	.heap_pages = 3024,
    },
    {
	.version = "2.1",
	.start_is = MI2_START_MULTIPLES,
	.used = 208,
	.slices = 224,
	.pages = 264,
	.page_bytes = 80,
	.page_used = 24,
	.page_block_size = 28,
	.page_local_free = 32,
	.page_thread_free = 40,
	.heap_delayed = 2840,
	.heap_cookie = MAX_HEAP_COOKIE,
	.heap_pages = 3024,
    },
    {
	.version = "2.1",
	.start_is = MI2_START_FIELD,
	.used = 208,
	.slices = 224,
	.pages = 264,
	.page_bytes = MI2_PAGE_BYTES,
	.page_local_free = 24,
	.page_used = 32,
	.page_block_size = 40,
	.page_start = 48,
	.page_thread_free = 56,
	.heap_delayed = 8,
	.heap_cookie = 32,
	.heap_pages = 192,
    },
    {
	.version = "2.2",
	.start_is = MI2_START_FIELD,
	.used = 216,
	.slices = 248,
	.pages = HEAD_BYTES,
	.page_bytes = MI2_PAGE_BYTES,
	.page_local_free = 24,
	.page_used = 32,
	.page_block_size = 40,
	.page_start = 48,
	.page_thread_free = 56,
	.heap_delayed = 8,
	.heap_cookie = 32,
	.heap_pages = 192,
    },
};

static bool read_head(struct mi2 *w, uint64_t addr)
{
	const struct mi2_layout *l = w->layout;
	struct mi2_segment *s = &w->seg;
	uint8_t raw[HEAD_BYTES];

	if (!image_read_all(w->img, addr, raw, l->pages))
		return false;
	memcpy(&s->used, raw + l->used, 2 * sizeof(s->used));
	memcpy(&s->slices, raw + l->slices,
	       offsetof(struct mi2_segment, pages) - offsetof(struct mi2_segment, slices));
	return true;
}

bool mi2_read(struct mi2 *w, uint64_t addr)
{
	return read_head(w, addr) &&
	       image_read_all(w->img, addr + w->layout->pages, w->seg.pages,
			      (size_t)MI2_MAX_SLICES * w->layout->page_bytes) &&
	       w->seg.entries <= MI2_MAX_SLICES;
}

static bool valid_segment(const struct mi2 *w, uint64_t addr)
{
	const struct mi2_segment *s = &w->seg;

	return (s->cookie ^ addr) == w->cookie && s->used && s->entries <= MI2_MAX_SLICES &&
	       s->info_slices && s->info_slices < s->entries && s->slices >= s->entries - 1 &&
	       s->slices <= UINT32_MAX &&
	       scan_all_writable(w->img, addr, addr + s->slices * MI2_SLICE);
}

static int find_segments(struct mi2 *w)
{
	w->segments.n = 0;
	vec_for_each (&w->img->maps, m) {
		uint64_t at = (m->start + SEGMENT_SIZE - 1) & -SEGMENT_SIZE;

		for (; m->write && !m->shared && at < m->end; at += SEGMENT_SIZE) {
			uint64_t touched = at;

			if (!image_present(w->img, m, &touched))
				break;
			at = touched & -SEGMENT_SIZE;
			if (!read_head(w, at) || !valid_segment(w, at))
				continue;
			if (vec_push(&w->segments, at))
				return -ENOMEM;
		}
	}
	return 0;
}

static uint64_t bytes_before(const struct mi2_layout *l, uint64_t size)
{
	if (l->start_is == MI2_START_384)
		return size >= 8 && size <= 1024 ? 384 : 0;
	if (size < 8 || size > 512)
		return 0;
	return size <= 64 ? 3 * size : size;
}

void mi2_parse(const struct mi2 *w, uint64_t segment, uint64_t slice, struct mi2_page *p)
{
	const struct mi2_layout *l = w->layout;
	const uint8_t *raw = w->seg.pages + slice * l->page_bytes;
	size_t used = l->page_start ? 2 : 4, size = l->page_start ? 8 : 4;

	memset(p, 0, sizeof(*p));
	memcpy(&p->slices, raw, sizeof(p->slices));
	memcpy(&p->capacity, raw + 10, sizeof(p->capacity));
	memcpy(&p->reserved, raw + 12, sizeof(p->reserved));
	memcpy(&p->free, raw + 16, sizeof(p->free));
	memcpy(&p->local_free, raw + l->page_local_free, sizeof(p->local_free));
	memcpy(&p->thread_free, raw + l->page_thread_free, sizeof(p->thread_free));
	memcpy(&p->heap, raw + l->page_thread_free + 8, sizeof(p->heap));
	/* Little-endian: the narrow fields are the low bytes. */
	memcpy(&p->used, raw + l->page_used, used);
	memcpy(&p->block_size, raw + l->page_block_size, size);
	p->thread_free &= ~THREAD_FLAGS;
	p->addr = segment + slice * MI2_SLICE;
	p->bytes = p->slices * MI2_SLICE;
	if (l->page_start) {
		memcpy(&p->start, raw + l->page_start, sizeof(p->start));
		return;
	}
	p->start = p->addr + bytes_before(l, p->block_size);
	if (p->block_size >= HUGE_BLOCK)
		p->block_size = p->bytes;
}

/* Is the first block of a list one of the page's? */
static bool is_block(const struct mi2_page *p, uint64_t at)
{
	return !at || (at >= p->start && (at - p->start) % p->block_size == 0 &&
		       (at - p->start) / p->block_size < p->capacity);
}

bool mi2_valid(const struct mi2 *w, const struct mi2_page *p)
{
	uint64_t bytes = p->addr + p->bytes - p->start;

	return p->start >= p->addr && p->start < p->addr + p->bytes && p->capacity <= p->reserved &&
	       p->used <= p->capacity && (!p->heap || scan_writable(w->img, p->heap)) &&
	       (p->reserved == 1 || p->reserved == bytes / p->block_size) && is_block(p, p->free) &&
	       is_block(p, p->local_free) && is_block(p, p->thread_free);
}

/* Adds to @valid and @odd how many pages of the current segment are consistent with the layout. */
static void judge_segment(const struct mi2 *w, uint64_t addr, size_t *valid, size_t *odd)
{
	uint64_t slice = w->seg.info_slices;
	struct mi2_page p = {.slices = 1};

	while (slice < w->seg.entries && p.slices) {
		mi2_parse(w, addr, slice, &p);
		slice += p.slices;
		if (!p.slices || (p.block_size && !mi2_valid(w, &p)))
			++*odd;
		else
			*valid += p.block_size != 0;
	}
}

/* Some pages can be damaged, or in the middle of a change. */
static bool fits(struct mi2 *w)
{
	size_t valid = 0, odd = 0;

	for (size_t i = 0; i < w->segments.n; i++) {
		if (mi2_read(w, w->segments.at[i]))
			judge_segment(w, w->segments.at[i], &valid, &odd);
	}
	return valid && valid >= VALID_FOR_ODD * odd;
}

/* Has the other layout the same blocks in all pages of the current segment?  It differs only in where they start. */
static bool same_in_segment(const struct mi2 *w, uint64_t addr, const struct mi2_layout *other)
{
	uint64_t slice = w->seg.info_slices;
	struct mi2_page p = {.slices = 1};

	while (slice < w->seg.entries && p.slices) {
		mi2_parse(w, addr, slice, &p);
		if (bytes_before(w->layout, p.block_size) != bytes_before(other, p.block_size))
			return false;
		slice += p.slices;
	}
	return true;
}

/* Has the other layout, which fits too, the same blocks in all pages?  Then it does not matter which one it is. */
static bool same_pages(struct mi2 *w, const struct mi2_layout *other)
{
	const struct mi2_layout *l = w->layout;

	if (l->page_start || other->page_start || l->pages != other->pages ||
	    l->page_bytes != other->page_bytes)
		return false;
	for (size_t i = 0; i < w->segments.n; i++) {
		if (mi2_read(w, w->segments.at[i]) && !same_in_segment(w, w->segments.at[i], other))
			return false;
	}
	return true;
}

static int find_with(struct mi2 *w, const struct mi2_layout *l, const uint64_t *words)
{
	w->layout = l;
	w->cookie = words[l->heap_cookie / 8];
	w->segments.n = 0;
	return w->cookie ? find_segments(w) : 0;
}

/* Chooses the layout that is consistent with the segments, which have the cookie of the main heap
 * @words.  Return: 1; 0: there is none; -ENOMEM. */
static int try_heap(struct mi2 *w, const uint64_t *words)
{
	const struct mi2_layout *best = NULL;

	w->unsure = false;
	for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++) {
		if (find_with(w, &layouts[k], words))
			return -ENOMEM;
		w->seen |= w->segments.n > 0;
		if (!fits(w))
			continue;
		w->unsure |= best && !same_pages(w, best);
		w->version = best ? "2" : layouts[k].version;
		best = best ? best : &layouts[k];
	}
	if (!best)
		return 0;
	return find_with(w, best, words) ? -ENOMEM : 1;
}

/* The main heap's thread data are static, too, and point back to it. */
static int find_main_heap(const struct scan_data *d, void *arg)
{
	struct mi2 *w = arg;
	int ret = 0;

	for (size_t i = 0; i + MAX_HEAP_COOKIE / 8 < d->n && !ret; i++) {
		uint64_t at = d->start + i * 8, tld = d->words[i];

		if (tld >= d->start && tld % 8 == 0 && (tld - d->start + TLD_BACKING) / 8 < d->n &&
		    d->words[(tld - d->start + TLD_BACKING) / 8] == at)
			ret = try_heap(w, d->words + i);
	}
	return ret;
}

int mi2_find(struct mi2 *w)
{
	int ret = scan_modules(w->img, find_main_heap, w);

	if (ret)
		return ret < 0 ? ret : 0;
	return w->seen ? -ENOTSUP : -ENOENT;
}
