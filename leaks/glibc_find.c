/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* main_arena, mp_ and the other arenas, by their shape: none of them has a symbol. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/glibc.h"

#define MAX_DATA   (16ull << 20) /* of one module: beyond it is no libc */
#define MAX_TEXT   (4ull << 20)
#define MAX_ARENAS 65536

/* Writable data of a module and the .bss behind it. */
struct area {
	uint64_t start, end;
	const struct image_map *map;
};

static uint64_t word_at(const uint8_t *buf, uint64_t offset)
{
	uint64_t v;

	memcpy(&v, buf + offset, sizeof(v));
	return v;
}

static uint32_t half_at(const uint8_t *buf, uint64_t offset)
{
	uint32_t v;

	memcpy(&v, buf + offset, sizeof(v));
	return v;
}

static bool pointer_like(uint64_t v)
{
	return v >= PAGE && v < 1ull << 56 && !(v & (CHUNK_ALIGN - 1));
}

/* Arenas other than the main one follow their heap's header, 32 or (since 2.35) 48 bytes. */
static bool arena_like(uint64_t v)
{
	return v > 1u << 20 && ((v & 0xfffff) == 0x20 || (v & 0xfffff) == 0x30);
}

static bool bins_consistent(const uint8_t *state, uint64_t addr)
{
	int good = 0;

	for (int i = 0; i < NUM_BINS; i++) {
		uint64_t empty = addr + ARENA_BINS + 16u * (unsigned)i - 16;
		uint64_t fd = word_at(state, ARENA_BINS + 16u * (unsigned)i);
		uint64_t bk = word_at(state, ARENA_BINS + 16u * (unsigned)i + 8);

		good += (fd == empty && bk == empty) ||
			(fd != empty && bk != empty && pointer_like(fd) && pointer_like(bk));
	}
	/* One or two may be on the way when a thread was stopped. */
	return good >= NUM_BINS - 2 && pointer_like(word_at(state, ARENA_TOP));
}

static uint64_t find_state(const uint8_t *buf, size_t n, uint64_t base)
{
	for (uint64_t o = 0; o + ARENA_SIZE <= n; o += 8) {
		uint64_t next = word_at(buf, o + ARENA_NEXT);

		if ((next == base + o || arena_like(next)) && bins_consistent(buf + o, base + o))
			return base + o;
	}
	return 0;
}

/*
 * mp_ by its fields around sbrk_base: two layouts, 2.26 to 2.34 and since 2.35.  What tunables and
 * mallopt() may change only adds to the score.
 */
static int score_par(struct glibc *g, const uint8_t *s, bool since_35, struct glibc_par *par)
{
	const uint8_t *n = s - (since_35 ? 36 : 32), *top_pad = s - (since_35 ? 88 : 64);
	uint64_t bins = word_at(s, 8), max_bytes = word_at(s, 16), count = word_at(s, 24);
	const struct image_map *m;

	par->sbrk_base = word_at(s, 0);
	par->n_mmaps = half_at(n, 0);
	par->mmapped_mem = word_at(s - 16, 0);
	m = par->sbrk_base ? image_map_at(g->img, par->sbrk_base) : NULL;
	if (!bins || bins > 64 || !max_bytes || max_bytes > 1040 || count > 65535 ||
	    par->mmapped_mem % PAGE || word_at(s - 8, 0) < par->mmapped_mem ||
	    par->n_mmaps > half_at(n, 8) || (par->sbrk_base && !m) ||
	    (par->n_mmaps == 0) != (par->mmapped_mem == 0))
		return 0;
	return (half_at(n, 4) == 65536 ? 2 : 0) + (bins == 64 && max_bytes == 1032) + (count == 7) +
	       (word_at(top_pad, 0) == 131072) + (m && !strcmp(m->path, "[heap]"));
}

static void find_par(struct glibc *g, const uint8_t *buf, size_t n)
{
	int best = 2;

	for (uint64_t o = 96; o + 32 <= n; o += 8) {
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

/* "2.36" behind @mark in the read-only memory of the module of @map. */
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

static bool look_in(struct glibc *g, const struct area *a)
{
	size_t len = (size_t)(a->end - a->start);
	uint8_t *buf = len <= MAX_DATA ? malloc(len) : NULL;
	uint64_t found = 0;

	if (!buf)
		return false;
	len = image_read(g->img, a->start, buf, len);
	found = find_state(buf, len, a->start);
	if (found) {
		g->main_arena = found;
		find_par(g, buf, len);
		g->minor = banner(g, a->map);
	}
	free(buf);
	return found;
}

/* Libraries named libc first, then everything that has data: a static program. */
static bool find_main(struct glibc *g)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < g->img->maps.n; i++) {
			const struct image_map *m = &g->img->maps.at[i];
			struct area a = {m->start, m->end, m};

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
	uint8_t state[ARENA_SIZE];

	if (!image_read_all(g->img, addr, state, sizeof(state)))
		return false;
	a->addr = addr;
	a->main = addr == g->main_arena;
	a->mutex = half_at(state, ARENA_MUTEX);
	a->flags = half_at(state, ARENA_FLAGS);
	a->top = word_at(state, ARENA_TOP);
	a->next = word_at(state, ARENA_NEXT);
	a->system_mem = word_at(state, ARENA_SYSTEM_MEM);
	memcpy(a->fastbin, state + ARENA_FASTBINS, sizeof(a->fastbin));
	return true;
}

int glibc_find(struct glibc *g)
{
	uint64_t at;

	if (!find_main(g))
		return -ENOENT;
	at = g->main_arena;
	do {
		struct glibc_arena a;

		if (!read_arena(g, at, &a) || g->arenas.n >= MAX_ARENAS) {
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
