/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Scans the roots of a program: registers, live stack frames, data of modules, memory of no known
 * allocator, and pointers that only the kernel holds.  Not roots: dead frames below a stack
 * pointer, stacks of exited threads that glibc keeps for new ones, and free memory of heaps.
 */
#include "leaks/roots.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inject/find.h"
#include "leaks/kernel_roots.h"
#include "leaks/scan.h"
#include "leaks/tcb.h"

#define BUFFER (1u << 20)
#define PAGE   4096u

struct scanner {
	struct scan scan;
	struct graph *g;
	struct image *img;
	const struct heap_range *owned;
	size_t nowned, next; /* the first that can overlap: maps and ranges ascend */
	struct coverage *cover;
	uint64_t guard;
	uint8_t *buf;
};

struct interval {
	uint64_t start, end;
	const struct image_map *map;
};

static bool is_code(const struct image *img, uint64_t addr)
{
	const struct image_map *m = image_map_at(img, addr);

	return m && m->exec;
}

/* Scans for mangled pointers: jmp_buf and atexit() contain them. */
static void scan_demangled(struct scanner *s, size_t n, uint64_t addr)
{
	const struct arch *arch = s->img->arch;
	const struct index *x = &s->g->index;

	for (size_t i = 0; i < n; i++) {
		uint64_t word = arch_word(arch, s->buf + i * arch->word_size), v, next;

		/* a plain address or a small number */
		if (arch->word_size == 8 && !(word >> arch->address_bits))
			continue;
		v = tcb_demangle(arch, word, s->guard);
		if (v - x->low >= x->span)
			continue;
		/* Many 32-bit values look like an address after demangling; but setjmp() saves the
		 * stack pointer just before the return address (sysdeps/arm/setjmp.S). */
		if (arch->word_size == 4) {
			if (i + 1 == n)
				continue;
			next = arch_word(arch, s->buf + (i + 1) * arch->word_size);
			if (!is_code(s->img, tcb_demangle(arch, next, s->guard)))
				continue;
		}
		scan_value(&s->scan, v, addr + arch->word_size * i, INDEX_NONE);
	}
}

static void scan_bytes(struct scanner *s, uint64_t at, uint64_t end, bool mangled_too)
{
	const unsigned int word = s->img->arch->word_size;
	const uint64_t mask = ~(uint64_t)(word - 1);

	at = (at + word - 1) & mask;
	while (at < end) {
		size_t want = end - at < BUFFER ? (size_t)(end - at) : BUFFER;
		size_t got = image_read(s->img, at, s->buf, want) & mask;

		s->g->root_bytes += got;
		scan_words(&s->scan, s->buf, got / word, at, INDEX_NONE);
		if (mangled_too && s->guard)
			scan_demangled(s, got / word, at);
		if (!got) {
			s->g->unreadable_bytes += PAGE;
			got = PAGE - at % PAGE;
		}
		at += got;
	}
}

/* On x86-64, instructions have whole addresses as operands, which are not aligned.  Each read
 * overlaps the one before, so that operands at the border are found. */
static void scan_code(struct scanner *s, uint64_t at, uint64_t end)
{
	const size_t size = sizeof(uint64_t);

	while (end - at >= size) {
		size_t want = end - at < BUFFER ? (size_t)(end - at) : BUFFER;
		size_t got = image_read(s->img, at, s->buf, want);

		if (got < size)
			return;
		scan_unaligned(&s->scan, s->buf, got - size + 1, at);
		at += got - size + 1;
	}
}

static void scan_interval(struct scanner *s, const struct interval *iv)
{
	bool mangled = s->scan.root.kind != ROOT_MEMORY && s->scan.root.kind != ROOT_CODE;
	uint64_t at = iv->start, run;

	if (iv->map->live)
		s->cover->unfrozen_bytes += iv->end - iv->start;
	while (at < iv->end && (run = image_present(s->img, iv->map, &at)) && at < iv->end) {
		scan_bytes(s, at, run < iv->end ? run : iv->end, mangled);
		if (s->scan.root.kind == ROOT_CODE && s->img->arch->elf_machine == EM_X86_64)
			scan_code(s, at, run < iv->end ? run : iv->end);
		at = run;
	}
}

static const struct image_thread *thread_on(const struct scanner *s, const struct interval *iv,
					    uint32_t *count)
{
	const struct image_thread *found = NULL;

	*count = 0;
	vec_for_each (&s->img->threads, th) {
		uint64_t sp = th->has_regs ? s->img->arch->regs.get_sp(&th->regs) : 0;

		if (sp >= iv->start && sp < iv->end) {
			found = th;
			++*count;
		}
	}
	return found;
}

static bool guarded_below(const struct scanner *s, const struct interval *iv)
{
	const struct image_map *m = iv->map;

	if (!strcmp(m->path, "[stack]"))
		return true;
	return m > s->img->maps.at && m[-1].end == iv->start && !m[-1].read && !m[-1].write;
}

/* Scans a memory range that no heap owns. */
static void scan_stretch(struct scanner *s, struct interval iv, enum root_kind kind)
{
	struct root root = {.kind = kind};
	const struct image_thread *th;
	uint32_t threads;
	uint64_t tcb, until;

	th = thread_on(s, &iv, &threads);
	if (th) {
		uint64_t low = s->img->arch->regs.get_sp(&th->regs) - s->img->arch->unwind.red_zone;

		root.kind = ROOT_STACK;
		root.tid = threads == 1 ? th->tid : 0;
		/* Memory below the stack pointer might not belong to the stack, unless a guard page
		 * shows where it ends. */
		if (threads == 1 && guarded_below(s, &iv) && low > iv.start)
			iv.start = low;
	} else if (!iv.map->path[0] && (tcb = tcb_dead(s->img, iv.start, iv.end, &until))) {
		s->cover->dead_stacks++;
		root.kind = ROOT_TLS;
		iv.start = tcb;
		iv.end = until;
	}
	scan_begin(&s->scan, root);
	scan_interval(s, &iv);
}

/* RELRO: memory that the dynamic linker protected after relocation, directly before the data. */
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

/* Code of a just-in-time compiler, which need not be writable any more. */
static bool is_made_code(const struct image_map *m)
{
	return m->exec && (m->path[0] != '/' || !strncmp(m->path, "/memfd:", 7));
}

static bool is_root_map(const struct image *img, const struct image_map *m)
{
	return (m->write || is_relro(img, m) || is_made_code(m)) && strncmp(m->path, "[v", 2) != 0;
}

static enum root_kind kind_of(const struct image *img, const struct image_map *m)
{
	if (is_made_code(m))
		return ROOT_CODE;
	return (m->path[0] == '/' && !m->shared) || is_bss(img, m) ? ROOT_GLOBAL : ROOT_MEMORY;
}

static void scan_map(struct scanner *s, const struct image_map *m)
{
	enum root_kind kind = kind_of(s->img, m);
	struct interval iv = {.start = m->start, .map = m};

	/* The recorder's rings contain addresses of blocks, but not as pointers of the program. */
	if (session_is_path(m->path)) {
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

/*
 * munmap() and mremap() are called with the start of a mapping, which is not the start of the block
 * if memalign() made it.  glibc's prev_size has the chunk's distance from the mapping's start.
 * Return: the block, or 0.
 */
static uint64_t aligned_block(const struct scanner *s, uint64_t mapping)
{
	const struct index *x = &s->g->index;
	const unsigned int size = s->img->arch->word_size;
	uint64_t chunk, offset;
	uint32_t first;
	uint8_t word[8];

	if (!mapping || mapping % PAGE)
		return 0;
	first = index_above(x, mapping - 1);
	if (first == x->n)
		return 0;
	chunk = x->block[first].addr - 2 * size;
	if (image_read(s->img, chunk, word, size) != size)
		return 0;
	offset = arch_word(s->img->arch, word);
	return offset && chunk - offset == mapping ? x->block[first].addr : 0;
}

static void scan_registers(struct scanner *s)
{
	vec_for_each (&s->img->threads, th) {
		const unsigned int size = s->img->arch->word_size;

		if (!th->has_regs && !th->had_regs)
			continue;
		scan_begin(&s->scan, (struct root){.kind = ROOT_REGISTER, .tid = th->tid});
		for (size_t i = 0; i < th->regs.size / size; i++) {
			uint64_t word = arch_word(s->img->arch, th->regs.raw + i * size);

			scan_value(&s->scan, word, 0, INDEX_NONE);
			/* Inside malloc() a register can have the address of the chunk instead of
			 * the block.  That address belongs to the block before it. */
			scan_value(&s->scan, word + 2 * size, 0, INDEX_NONE);
			scan_value(&s->scan, aligned_block(s, word), 0, INDEX_NONE);
		}
	}
}

/* The innermost frames of a thread that holds an arena's lock can have the only reference to the
 * chunk that malloc() is about to return. */
static void scan_busy_stacks(struct scanner *s)
{
	const unsigned int size = s->img->arch->word_size;

	vec_for_each (&s->img->threads, th) {
		uint64_t sp = th->has_regs ? s->img->arch->regs.get_sp(&th->regs) : 0;
		size_t got = sp ? image_read(s->img, sp, s->buf, IMAGE_ALLOCATOR_FRAMES) : 0;

		scan_begin(&s->scan, (struct root){.kind = ROOT_STACK, .tid = th->tid});
		for (size_t i = 0; i < got / size; i++)
			scan_value(&s->scan, arch_word(s->img->arch, s->buf + i * size) + 2 * size,
				   sp + i * size, INDEX_NONE);
	}
}

static int scan_kernel(struct scanner *s)
{
	struct kernel_roots k;
	int ret = kernel_roots_read(&k, s->img->pid);

	scan_begin(&s->scan, (struct root){.kind = ROOT_KERNEL});
	vec_for_each (&k.words, word)
		scan_value(&s->scan, *word, 0, INDEX_NONE);
	s->cover->kernel_words = (uint32_t)k.words.n;
	vec_free(&k.words);
	return ret;
}

/* Scans heap memory that its walker did not understand. */
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
		scan_begin(&s->scan, (struct root){.kind = ROOT_MEMORY});
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
		s->guard = tcb_guard(img);
		ret = 0;
		vec_for_each (&img->maps, m) {
			if (!ret && is_root_map(img, m)) {
				scan_map(s, m);
				ret = scan_flush(&s->scan);
			}
		}
		if (!ret)
			ret = scan_skipped(s, heaps);
		/* After the globals: if both point to a block, the global says more. */
		scan_registers(s);
		if (heaps->busy)
			scan_busy_stacks(s);
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
