/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds main_arena, mp_ and the other arenas by their contents: none of them has a symbol. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "heaps/glibc/glibc.h"

#define MAX_DATA   (16ull << 20) /* of one module; libc has less */
#define MAX_TEXT   (4ull << 20)
#define MAX_ARENAS 65536

/* Writable data of a module with its .bss. */
struct data_area {
	uint64_t start, end;
	const struct image_map *map;
};

static uint32_t int_at(const uint8_t *buf, uint64_t offset)
{
	uint32_t v;

	memcpy(&v, buf + offset, sizeof(v));
	return v;
}

static bool chunk_like(const struct glibc *g, uint64_t v)
{
	return v >= PAGE && v < 1ull << 56 && !(v & (g->l->align - 1));
}

/* Arenas other than the main one follow the header of their heap. */
static bool arena_like(const struct glibc *g, uint64_t v)
{
	uint64_t offset = v & 0xfffff;

	return v > 1u << 20 && (offset == g->l->heap_header[0] || offset == g->l->heap_header[1]);
}

static bool bins_consistent(const struct glibc *g, const uint8_t *state, uint64_t addr)
{
	const uint64_t top = glibc_word(g, state, g->l->top);
	const uint32_t word = g->l->word;
	int good = 0;

	for (unsigned int i = 0; i < NUM_BINS; i++) {
		uint64_t at = g->l->bins + 2ull * word * i, empty = addr + at - g->l->header;
		uint64_t fd = glibc_word(g, state, at), bk = glibc_word(g, state, at + word);

		good += (fd == empty && bk == empty) ||
			(fd != empty && bk != empty && chunk_like(g, fd) && chunk_like(g, bk));
	}
	/* A bin or two can be in the middle of a change by a stopped thread. */
	return good >= NUM_BINS - 2 && (top == addr + g->l->top || chunk_like(g, top));
}

static uint64_t find_state(const struct glibc *g, const uint8_t *buf, size_t n, uint64_t base)
{
	for (uint64_t o = 0; o + g->l->arena_size <= n; o += g->l->word) {
		uint64_t next = glibc_word(g, buf, o + g->l->next);

		if ((next == base + o || arena_like(g, next)) &&
		    bins_consistent(g, buf + o, base + o))
			return base + o;
	}
	return 0;
}

/*
 * Scores a candidate for mp_ by its fields around sbrk_base.  There are two layouts, 2.26 to 2.34
 * and since 2.35.  Fields that tunables and mallopt() can change only add to the score.
 */
static int score_par(struct glibc *g, const uint8_t *s, bool since_35, struct glibc_par *par)
{
	const struct glibc_layout *l = g->l;
	const uint8_t *n = s - l->n_mmaps[since_35], *top_pad = s - l->top_pad[since_35];
	uint64_t bins = glibc_word(g, s, l->word), max_bytes = glibc_word(g, s, 2ull * l->word),
		 count = glibc_word(g, s, 3ull * l->word);
	const struct image_map *m;

	par->sbrk_base = glibc_word(g, s, 0);
	par->n_mmaps = int_at(n, 0);
	par->mmapped_mem = glibc_word(g, s - 2ull * l->word, 0);
	m = par->sbrk_base ? image_map_at(g->img, par->sbrk_base) : NULL;
	if (!bins || bins > TCACHE_BINS || !max_bytes || max_bytes > 1040 || count > 65535 ||
	    par->mmapped_mem % PAGE || glibc_word(g, s - l->word, 0) < par->mmapped_mem ||
	    par->n_mmaps > int_at(n, 8) || (par->sbrk_base && !m) ||
	    (par->n_mmaps == 0) != (par->mmapped_mem == 0))
		return 0;
	return (int_at(n, 4) == 65536 ? 2 : 0) +
	       (bins == TCACHE_BINS && max_bytes == l->tcache_max_bytes) + (count == 7) +
	       (glibc_word(g, top_pad, 0) == 131072) + (m && !strcmp(m->path, "[heap]"));
}

static void find_par(struct glibc *g, const uint8_t *buf, size_t n)
{
	int best = 2;

	for (uint64_t o = 96; o + 4ull * g->l->word <= n; o += g->l->word) {
		for (int since_35 = 0; since_35 < 2; since_35++) {
			struct glibc_par par = {.known = true};
			int score = score_par(g, buf + o, since_35, &par);

			if (score > best) {
				best = score;
				g->par = par;
			}
		}
	}
}

/* Finds the minor version, as in "2.36", after @mark in the read-only memory of @map's module. */
static int banner(struct glibc *g, const struct image_map *map)
{
	static const char mark[] = "stable release version 2.";
	int minor = 0;

	vec_for_each (&g->img->maps, m) {
		size_t len = (size_t)(m->end - m->start < MAX_TEXT ? m->end - m->start : MAX_TEXT);
		uint8_t *buf, *hit;

		if (minor || m->write || strcmp(m->path, map->path) || !m->path[0])
			continue;
		buf = malloc(len + 1);
		if (!buf)
			return 0;
		len = image_read(g->img, m->start, buf, len);
		buf[len] = 0;
		hit = memmem(buf, len, mark, sizeof(mark) - 1);
		if (hit)
			minor = atoi((char *)hit + sizeof(mark) - 1);
		free(buf);
	}
	return minor;
}

static bool named_libc(const struct image_map *m)
{
	const char *name = image_map_name(m);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2.", 7);
}

static bool look_in(struct glibc *g, const struct data_area *a)
{
	size_t len = (size_t)(a->end - a->start);
	uint8_t *buf = len <= MAX_DATA ? malloc(len) : NULL;
	uint64_t found = 0;

	if (!buf)
		return false;
	len = image_read(g->img, a->start, buf, len);
	found = find_state(g, buf, len, a->start);
	if (found) {
		g->main_arena = found;
		g->module = a->map->path;
		find_par(g, buf, len);
		g->minor = banner(g, a->map);
	}
	free(buf);
	return found;
}

/* Searches libraries named libc first, then all modules with data, for static programs. */
static bool find_main(struct glibc *g)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < g->img->maps.n; i++) {
			const struct image_map *m = &g->img->maps.at[i];
			struct data_area a = {m->start, m->end, m};

			if (!m->write || m->shared || m->path[0] != '/' ||
			    named_libc(m) != (pass == 0))
				continue;
			while (i + 1 < g->img->maps.n && m[1].start == a.end && m[1].write &&
			       !m[1].shared && (!m[1].path[0] || !strcmp(m[1].path, a.map->path))) {
				a.end = (++m)->end;
				i++;
			}
			if (look_in(g, &a))
				return true;
		}
	}
	return false;
}

static bool read_arena(struct glibc *g, uint64_t addr, struct glibc_arena *a)
{
	uint8_t state[ARENA_SIZE_MAX];

	if (!image_read_all(g->img, addr, state, g->l->arena_size))
		return false;
	a->addr = addr;
	a->main = addr == g->main_arena;
	a->mutex = int_at(state, ARENA_MUTEX);
	a->flags = int_at(state, ARENA_FLAGS);
	a->top = glibc_word(g, state, g->l->top);
	a->next = glibc_word(g, state, g->l->next);
	a->system_mem = glibc_word(g, state, g->l->system_mem);
	for (uint32_t i = 0; i < NUM_FASTBINS; i++)
		a->fastbin[i] = glibc_word(g, state, g->l->fastbins + i * g->l->word);
	return true;
}

static bool is_arena(const struct glibc *g, uint64_t addr)
{
	vec_for_each (&g->arenas, a) {
		if (a->addr == addr)
			return true;
	}
	return false;
}

int glibc_find(struct glibc *g)
{
	uint64_t at;

	if (!find_main(g))
		return -ENOENT;
	at = g->main_arena;
	do {
		struct glibc_arena a;

		/* Damage can lead back to another arena than the first one. */
		if (is_arena(g, at) || g->arenas.n >= MAX_ARENAS || !read_arena(g, at, &a)) {
			heap_damage(g->heap, at, "the ring of arenas is broken here");
			heap_doubt(g->heap, "the list of arenas is broken at %#llx",
				   (unsigned long long)at);
			return 0;
		}
		if (vec_push(&g->arenas, a))
			return -ENOMEM;
		at = a.next;
	} while (at != g->main_arena);
	return 0;
}
