/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where a program keeps its first pointers: registers, live stack frames, data of modules, memory
 * of no known allocator, and what only the kernel holds for it.  Not roots: dead frames below a
 * stack pointer, stacks of exited threads that glibc keeps for the next one, free memory of heaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "leaks/graph.h"
#include "leaks/kernel_roots.h"

#define BUFFER	  (1u << 20)
#define TCB_NEAR  8192u /* struct pthread is at the top of a thread's stack, smaller than this */
#define TCB_SELF  16	/* tcbhead_t: tcb at 0, self at 16 (glibc, x86_64 nptl/tls.h) */
#define TCB_GUARD 0x30	/* pointer_guard, likewise */
#define PAGE	  4096u

struct scanner {
	struct scan scan;
	struct graph *g;
	struct image *img;
	const struct heap_range *owned;
	size_t nowned, next; /* maps come in order of address, and so do ranges */
	struct coverage *cover;
	uint64_t guard;
	bool all_tls; /* of every thread the thread pointer is known */
	uint8_t *buf;
};

struct interval {
	uint64_t start, end;
	const struct image_map *map;
};

/* jmp_buf and atexit() mangle pointers so (sysdeps/x86_64/sysdep.h, PTR_MANGLE). */
static uint64_t demangle(uint64_t v, uint64_t guard)
{
	return (v >> 17 | v << 47) ^ guard;
}

static void scan_demangled(struct scanner *s, const uint64_t *word, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v;

		if (!(word[i] >> INDEX_ADDR_BITS))
			continue; /* a plain address or a small number */
		v = demangle(word[i], s->guard);
		scan_words(&s->scan, &v, 1, addr + 8 * i, INDEX_NONE);
	}
}

static void scan_bytes(struct scanner *s, uint64_t at, uint64_t end, bool mangled_too)
{
	at = (at + 7) & ~7ull;
	while (at < end) {
		size_t want = end - at < BUFFER ? (size_t)(end - at) : BUFFER;
		size_t got = image_read(s->img, at, s->buf, want) & ~7ull;
		const uint64_t *word = (const uint64_t *)(const void *)s->buf;

		s->g->root_bytes += got;
		scan_words(&s->scan, word, got / 8, at, INDEX_NONE);
		if (mangled_too && s->guard)
			scan_demangled(s, word, got / 8, at);
		if (!got) {
			s->g->unreadable_bytes += PAGE;
			got = PAGE - at % PAGE;
		}
		at += got;
	}
}

static void scan_interval(struct scanner *s, const struct interval *iv)
{
	bool mangled = s->scan.root.kind != ROOT_MEMORY;
	uint64_t at = iv->start, run;

	if (iv->map->live)
		s->cover->unfrozen_bytes += iv->end - iv->start;
	while (at < iv->end && (run = image_present(s->img, iv->map, &at)) && at < iv->end) {
		scan_bytes(s, at, run < iv->end ? run : iv->end, mangled);
		at = run;
	}
}

static const struct image_thread *thread_on(const struct scanner *s, const struct interval *iv,
					    uint32_t *count)
{
	const struct image_thread *found = NULL;

	*count = 0;
	vec_for_each (&s->img->threads, th) {
		uint64_t sp = th->has_regs ? s->img->arch->get_sp(&th->regs) : 0;

		if (sp >= iv->start && sp < iv->end) {
			found = th;
			++*count;
		}
	}
	return found;
}

static bool alive(const struct scanner *s, uint64_t tcb)
{
	vec_for_each (&s->img->threads, th) {
		if (th->tls == tcb)
			return true;
	}
	return false;
}

/* Return: address of the control block of an exited thread at the top of @iv, else 0. */
static uint64_t dead_tcb(struct scanner *s, const struct interval *iv)
{
	uint64_t start = iv->end - iv->start > TCB_NEAR ? iv->end - TCB_NEAR : iv->start;
	uint64_t word[TCB_NEAR / 8];
	size_t n;

	if (iv->map->path[0] || !s->all_tls)
		return 0;
	n = image_read(s->img, start, word, (size_t)(iv->end - start)) / 8;
	for (size_t i = 0; i + TCB_SELF / 8 < n; i++) {
		uint64_t at = start + 8 * i;

		if (word[i] == at && word[i + TCB_SELF / 8] == at)
			return alive(s, at) ? 0 : at;
	}
	return 0;
}

static bool guarded_below(const struct scanner *s, const struct interval *iv)
{
	const struct image_map *m = iv->map;

	if (!strcmp(m->path, "[stack]"))
		return true;
	return m > s->img->maps.at && m[-1].end == iv->start && !m[-1].read && !m[-1].write;
}

/* What is queued belongs to the root before. */
static void begin_root(struct scanner *s, struct root root)
{
	scan_flush(&s->scan);
	s->scan.root = root;
}

/* A stretch of memory that no heap owns. */
static void scan_stretch(struct scanner *s, struct interval iv, enum root_kind kind)
{
	struct root root = {.kind = kind};
	const struct image_thread *th;
	uint32_t threads;
	uint64_t tcb;

	th = thread_on(s, &iv, &threads);
	if (th) {
		uint64_t low = s->img->arch->get_sp(&th->regs) - s->img->arch->red_zone;

		root.kind = ROOT_STACK;
		root.tid = threads == 1 ? th->tid : 0;
		/* Below may be somebody else's memory, unless a guard page says where it ends. */
		if (threads == 1 && guarded_below(s, &iv) && low > iv.start)
			iv.start = low;
	} else if ((tcb = dead_tcb(s, &iv))) {
		s->cover->dead_stacks++;
		root.kind = ROOT_TLS;
		iv.start = tcb;
	}
	begin_root(s, root);
	scan_interval(s, &iv);
}

/* RELRO: what the dynamic linker protected after relocating lies right before the data. */
static bool is_relro(const struct image *img, const struct image_map *m)
{
	const struct image_map *last = img->maps.at + img->maps.n;

	return m->read && !m->write && !m->exec && !m->shared && m->path[0] == '/' &&
	       m + 1 < last && m[1].start == m->end && m[1].write && !strcmp(m[1].path, m->path);
}

static bool is_bss(const struct image *img, const struct image_map *m)
{
	return m > img->maps.at && !m->path[0] && m[-1].end == m->start && m[-1].path[0] == '/' &&
	       m[-1].write && !m[-1].shared;
}

static bool is_root_map(const struct image *img, const struct image_map *m)
{
	return (m->write || is_relro(img, m)) && strncmp(m->path, "[v", 2) != 0;
}

static void scan_map(struct scanner *s, const struct image_map *m)
{
	enum root_kind kind =
	    (m->path[0] == '/' && !m->shared) || is_bss(s->img, m) ? ROOT_GLOBAL : ROOT_MEMORY;
	struct interval iv = {.start = m->start, .map = m};

	/* The recorder's rings hold addresses of blocks that are none of the program's pointers. */
	if (strstr(m->path, "memprof-")) {
		s->cover->skipped_bytes += m->end - m->start;
		return;
	}
	while (s->next < s->nowned && s->owned[s->next].end <= m->start)
		s->next++;
	for (size_t i = s->next; i < s->nowned && s->owned[i].start < m->end; i++) {
		const struct heap_range *r = &s->owned[i];

		if (r->end <= iv.start)
			continue;
		iv.end = r->start;
		if (iv.end > iv.start)
			scan_stretch(s, iv, kind);
		iv.start = r->end;
	}
	iv.end = m->end;
	if (iv.end > iv.start)
		scan_stretch(s, iv, kind);
}

static void scan_registers(struct scanner *s)
{
	vec_for_each (&s->img->threads, th) {
		uint64_t word[ARCH_MAX_REGSET / 8];
		size_t n = th->regs.size / 8;

		if (!th->has_regs)
			continue;
		memcpy(word, th->regs.raw, n * 8);
		begin_root(s, (struct root){.kind = ROOT_REGISTER, .tid = th->tid});
		for (size_t i = 0; i < n; i++) {
			uint64_t chunk = word[i] + 16;

			scan_words(&s->scan, &word[i], 1, 0, INDEX_NONE);
			/* Inside of malloc() a register may hold the chunk, not yet the block. */
			if (index_find(&s->g->index, word[i]) == INDEX_NONE)
				scan_words(&s->scan, &chunk, 1, 0, INDEX_NONE);
		}
	}
}

static int scan_kernel(struct scanner *s)
{
	struct kernel_roots k;
	int ret = kernel_roots_read(&k, s->img->pid);

	begin_root(s, (struct root){.kind = ROOT_KERNEL});
	scan_words(&s->scan, k.words.at, k.words.n, 0, INDEX_NONE);
	s->cover->kernel_words = (uint32_t)k.words.n;
	vec_free(&k.words);
	return ret;
}

/* Heap memory that its walker could not make sense of. */
static int scan_skipped(struct scanner *s, const struct heap_ranges *heaps)
{
	int ret = 0;

	for (size_t i = 0; i < heaps->nskipped && !ret; i++) {
		const struct heap_range *r = &heaps->skipped[i];
		const struct image_map *m = image_map_at(s->img, r->start);
		struct interval iv = {.start = r->start, .end = r->end, .map = m};

		if (!m)
			continue;
		if (iv.end > m->end)
			iv.end = m->end;
		s->scan.root = (struct root){.kind = ROOT_MEMORY};
		scan_interval(s, &iv);
		ret = scan_flush(&s->scan);
	}
	return ret;
}

int roots_scan(struct graph *g, struct image *img, const struct heap_ranges *heaps,
	       struct coverage *c, struct mp_err *err)
{
	struct scanner *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	memset(c, 0, sizeof(*c));
	if (s)
		s->buf = malloc(BUFFER);
	if (s && s->buf) {
		s->scan.graph = s->g = g;
		s->img = img;
		s->owned = heaps->owned;
		s->nowned = heaps->nowned;
		s->cover = c;
		s->all_tls = img->threads.n > 0;
		vec_for_each (&img->threads, th) {
			s->all_tls &= th->tls != 0;
			if (th->tls && !s->guard)
				image_word(img, th->tls + TCB_GUARD, &s->guard);
		}
		ret = 0;
		vec_for_each (&img->maps, m) {
			if (!ret && is_root_map(img, m)) {
				scan_map(s, m);
				ret = scan_flush(&s->scan);
			}
		}
		if (!ret)
			ret = scan_skipped(s, heaps);
		/* After the globals: of two ways to a block theirs says more. */
		scan_registers(s);
		if (!ret && img->pid)
			ret = scan_kernel(s);
		if (!ret)
			ret = scan_flush(&s->scan);
	}
	if (s)
		free(s->buf);
	free(s);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "no memory for the list of roots") : 0;
}
