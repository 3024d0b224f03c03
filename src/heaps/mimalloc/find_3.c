/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds mimalloc 3's page map without symbols, in a module that has its messages: a static variable
 * points to it, and it leads to pages that are where it says.
 *
 * Layout: types.h and internal.h of 3.0 and 3.4; for 3.6 and 3.7 what Debian's libraries do.
 */
#include <string.h>
#include "heaps/mimalloc/mimalloc_3.h"

#define OWNED	    1ull	  /* low bit of thread_free */
#define HIGH_HEADER (16ull << 20) /* most bytes from a header that is before the blocks to them */
#define HEADER_SIZE 128		  /* the largest mi_page_t */

enum { MEM_NONE, MEM_LAST = 8 };

static const struct mi3_layout layouts[] = {
    {
	.version = "3.0",
	.header = MI3_BEFORE,
	.page_bytes = 120,
	.thread = 0,
	.free = 8,
	.used = 16,
	.capacity = 18,
	.local_free = 24,
	.thread_free = 32,
	.block_size = 40,
	.start = 48,
	.heap = 64,
	.next = 72,
	.memid = 96,
	.arena_kind = 7,
	.arena_slices = 32,
	.heap_pages = 160,
    },
    {
	.version = "3.4",
	.header = MI3_IN_ARENA,
	.start_is = MI3_WORDS,
	.page_bytes = 112,
	.thread = 0,
	.free = 8,
	.used = 16,
	.capacity = 18,
	.local_free = 24,
	.thread_free = 32,
	.block_size = 40,
	.start = 48,
	.heap = 56,
	.next = 72,
	.memid = 88,
	.arena_kind = 7,
	.arena_slices = 40,
	.heap_pages = 184,
    },
    {
	.version = "3.6.0",
	.header = MI3_IN_CHUNK,
	.start_is = MI3_BYTES,
	.page_bytes = 128,
	.thread = 8,
	.free = 16,
	.used = 40,
	.capacity = 56,
	.local_free = 24,
	.thread_free = 64,
	.block_size = 32,
	.start = 48,
	.heap = 72,
	.next = 88,
	.memid = 104,
	.arena_kind = 6,
	.map = 80,
	.slot_step = 1,
	.arena_slices = 48,
	.heap_pages = 1400,
	.queues = MI3_MAX_QUEUES,
    },
    {
	.version = "3.6.1",
	.header = MI3_IN_CHUNK,
	.page_bytes = 128,
	.thread = 8,
	.free = 16,
	.used = 40,
	.capacity = 56,
	.local_free = 24,
	.thread_free = 64,
	.block_size = 32,
	.start = 48,
	.heap = 72,
	.next = 88,
	.memid = 104,
	.arena_kind = 6,
	.map = 72,
	.slot_step = 1,
	.arena_slices = 48,
	.heap_pages = 1400,
	.queues = MI3_MAX_QUEUES,
    },
    {
	.version = "3.7.0",
	.header = MI3_IN_CHUNK,
	.page_bytes = 128,
	.thread = 8,
	.free = 16,
	.used = 40,
	.capacity = 56,
	.local_free = 24,
	.thread_free = 64,
	.block_size = 32,
	.start = 48,
	.heap = 72,
	.next = 88,
	.memid = 104,
	.arena_kind = 6,
	.map = 72,
	.slot_step = 5,
	.arena_slices = 48,
	.heap_pages = 1408,
	.queues = MI3_MAX_QUEUES,
    },
};

static uint64_t field(const uint8_t *raw, unsigned offset)
{
	uint64_t word;

	memcpy(&word, raw + offset, sizeof(word));
	return word;
}

bool mi3_read(struct mi3 *w, uint64_t at, struct mi3_page *p)
{
	const struct mi3_layout *l = w->layout;
	uint8_t raw[HEADER_SIZE];

	if (!image_read_all(w->img, at, raw, l->page_bytes))
		return false;
	p->thread = field(raw, l->thread);
	p->free = field(raw, l->free);
	p->local_free = field(raw, l->local_free);
	p->thread_free = field(raw, l->thread_free) & ~OWNED;
	p->block_size = field(raw, l->block_size);
	p->raw_start = field(raw, l->start);
	p->start = p->raw_start;
	if (l->start_is == MI3_WORDS)
		p->start = at + (p->raw_start & UINT32_MAX) * 8;
	else if (l->start_is == MI3_BYTES)
		p->start = at + p->raw_start;
	p->heap = field(raw, l->heap);
	p->next = field(raw, l->next);
	p->prev = field(raw, l->next + 8u);
	memcpy(&p->used, raw + l->used, sizeof(p->used));
	memcpy(&p->capacity, raw + l->capacity, 2 * sizeof(p->capacity));
	memcpy(&p->mem, raw + l->memid, sizeof(p->mem));
	return true;
}

/* Is the header at @at, which was found through the map's entry for @slice, where it must be? */
static bool in_place(struct mi3 *w, uint64_t at, uint64_t slice, const struct mi3_page *p)
{
	bool in_arena = p->mem.kind == w->layout->arena_kind;
	uint64_t base =
		     w->layout->header == MI3_IN_CHUNK ? p->mem.arena & -MI3_CHUNK : p->mem.arena,
		 first = base + ((uint64_t)p->mem.slice << MI3_SLICE_SHIFT),
		 index = (slice >> MI3_SLICE_SHIFT) * w->layout->slot_step % MI3_CHUNK_SLICES,
		 slot = (slice & -MI3_CHUNK) + index * HEADER_SIZE;

	switch (w->layout->header) {
	case MI3_BEFORE:
		return at == slice && (!in_arena || at == first) && p->start > at &&
		       p->start <= at + HIGH_HEADER;
	case MI3_IN_ARENA:
		return (p->start & -MI3_SLICE) == slice && (!in_arena || first == slice) &&
		       (at == slice ||
			(in_arena ? at > p->mem.arena : p->start <= at + HIGH_HEADER));
	default:
		return (p->start & -MI3_SLICE) == slice && mi3_word(w, slot) == at &&
		       (!in_arena || (slice >= first && slice - first < MI3_CHUNK));
	}
}

bool mi3_valid(struct mi3 *w, uint64_t at, uint64_t slice, const struct mi3_page *p)
{
	return at % 8 == 0 && p->block_size && p->block_size % 8 == 0 && p->reserved &&
	       p->capacity <= p->reserved && p->used <= p->capacity &&
	       p->block_size <= UINT64_MAX / 2 / p->reserved && p->mem.kind != MEM_NONE &&
	       p->mem.kind <= MEM_LAST && in_place(w, at, slice, p) &&
	       scan_all_writable(w->img, p->start, mi3_end(p));
}

bool mi3_read_part(struct mi3 *w, uint64_t map, uint64_t key)
{
	uint64_t sub = mi3_word(w, map + w->layout->map + key * 8);

	return sub % 8 == 0 && scan_writable(w->img, sub) &&
	       image_read_all(w->img, sub, w->sub, sizeof(w->sub));
}

/* Does the part of @map for @key lead to pages at the matching addresses?  Some can have been
 * freed, and their memory reused. */
static bool valid_part(struct mi3 *w, uint64_t map, uint64_t key)
{
	size_t valid = 0, odd = 0;
	uint64_t last = 0;
	struct mi3_page p;

	if (!mi3_read_part(w, map, key))
		return false;
	for (size_t i = 0; i < MI3_SUB_WORDS; i++) {
		uint64_t at = w->sub[i], slice = mi3_slice(key, i);

		if (!at || at == last || (w->layout->header == MI3_BEFORE && at != slice))
			continue;
		last = at;
		if (mi3_read(w, at, &p) && mi3_valid(w, at, slice, &p))
			valid++;
		else
			odd++;
	}
	return valid > odd;
}

static bool valid_map(struct mi3 *w, uint64_t map)
{
	for (size_t k = 0; k < w->n_keys; k++) {
		for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
			w->layout = &layouts[l];
			if (valid_part(w, map, w->key[k]))
				return true;
		}
	}
	return false;
}

static int find_map(const struct scan_data *d, void *arg)
{
	struct mi3 *w = arg;

	for (size_t i = 0; i < d->n; i++) {
		w->map = d->words[i];
		if (w->map && w->map % 4096 == 0 && scan_writable(d->img, w->map) &&
		    valid_map(w, w->map))
			return 1;
	}
	return 0;
}

static void collect_keys(struct mi3 *w)
{
	vec_for_each (&w->img->maps, m) {
		uint64_t last = (m->end - 1) >> MI3_SUB_SHIFT;

		for (uint64_t k = m->start >> MI3_SUB_SHIFT; k <= last && w->n_keys < MI3_MAX_KEYS;
		     k++) {
			if (m->write && !m->shared && k < mi3_parts(w) &&
			    (!w->n_keys || w->key[w->n_keys - 1] != k))
				w->key[w->n_keys++] = k;
		}
	}
}

int mi3_find(struct mi3 *w)
{
	collect_keys(w);
	return scan_modules_with(w->img, "mimalloc: ", 0, find_map, w);
}
