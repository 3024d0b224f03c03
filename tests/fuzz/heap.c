/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Everything that leaks/ does with the memory of a process.  First byte 0: the rest is a core file.
 * Else the second byte selects the architecture, and the rest is a thread's registers and mappings,
 * see take_map().
 */
#include <errno.h>
#include <gelf.h>
#include "fuzz.h"
#include "leaks/analysis.h"
#include "leaks/retained/retained.h"

/* The names of mappings, and the constants by which allocators are found. */
static const struct {
	const char *path, *constant;
} files[] = {
    {"", NULL},
    {"[heap]", NULL},
    {"[stack]", NULL},
    {"/bin/it", NULL},
    {"/lib/libc.so.6", NULL},
    {"/lib/libjemalloc.so.2", "<jemalloc>"},
    {"/lib/libtcmalloc.so.4", "TCMALLOC_"},
    {"/lib/libmimalloc.so.2", "mimalloc: "},
};
#define NFILES (sizeof(files) / sizeof(files[0]))

/* The input's bytes for each mapping; the rest of the mapping is zeros. */
struct content {
	const uint8_t *at;
	size_t size;
};
struct world {
	VEC(struct content) contents; /* same indexes as the image's maps */
};

static size_t read_bytes(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct world *w = img->backend;
	size_t done = 0;

	while (done < len) {
		const struct image_map *m = image_map_at(img, addr + done);
		const struct content *c = m ? &w->contents.at[m - img->maps.at] : NULL;
		uint64_t at = m ? addr + done - m->start : 0;
		size_t n = len - done;

		if (!m)
			break;
		n = n < m->end - m->start - at ? n : (size_t)(m->end - m->start - at);
		memset((char *)to + done, 0, n);
		if (at < c->size)
			memcpy((char *)to + done, c->at + at, n < c->size - at ? n : c->size - at);
		done += n;
	}
	return done;
}

static uint64_t present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	const struct world *w = img->backend;
	size_t size = w->contents.at[map - img->maps.at].size;

	if (*addr < map->start)
		*addr = map->start;
	return *addr - map->start < size ? map->start + size : 0;
}

static int no_file(struct image *img, const struct image_map *map)
{
	(void)img;
	(void)map;
	return -ENOENT;
}

static const struct image_ops ops = {.fetch = read_bytes, .present = present, .open_file = no_file};

/* Takes a mapping from the input: address (8 bytes, rounded down to a page), permissions and name
 * (1), number of pages (2), number of bytes of content that follow (2). */
static void take_map(struct image *img, struct world *w, struct input *in)
{
	uint64_t start = input_number(in, 8) & ~0xfffull, what = input_number(in, 1);
	size_t file = what % NFILES;
	uint64_t size = (input_number(in, 2) % 8192 + 1) << 12, content = input_number(in, 2);
	uint64_t lowest = img->maps.n ? img->maps.at[img->maps.n - 1].end : 0;
	struct image_map m = {.start = start,
			      .end = start + size,
			      .read = true,
			      .write = what & 0x10,
			      .exec = what & 0x20};
	struct content c = {in->at, content < in->left ? content : in->left};

	in->at += c.size;
	in->left -= c.size;
	c.size = c.size < size ? c.size : size;
	if (m.end <= m.start || m.start < lowest || m.end > 1ull << img->arch->address_bits)
		return;
	m.ino = *files[file].path == '/' ? file : 0;
	m.path = strdup(files[file].path);
	if (!m.path || vec_push(&img->maps, m) || vec_push(&w->contents, c))
		abort();
}

/* Adds mappings below all others, with the constants. */
static void take_constants(struct image *img, struct world *w)
{
	for (size_t i = 0; i < NFILES; i++) {
		struct image_map m = {.start = (img->maps.n + 1) << 12,
				      .end = (img->maps.n + 2) << 12,
				      .read = true,
				      .ino = i};
		struct content c = {(const uint8_t *)files[i].constant, 0};

		if (!files[i].constant)
			continue;
		c.size = strlen(files[i].constant);
		m.path = strdup(files[i].path);
		if (!m.path || vec_push(&img->maps, m) || vec_push(&w->contents, c))
			abort();
	}
}

static void analyse(struct image *img)
{
	struct analysis_options o = {
	    .confirm = 1, .why = img->maps.n ? img->maps.at[0].start : 0, .content = true};
	struct analysis a = {.pid = 1};
	struct mp_err err = {0};

	analysis_of_image(&a, img, &o, &err);
	analysis_free(&a);
}

/* Bytes are counted once: by a root, or as unreachable. */
static void retain(struct image *img)
{
	const struct retained_options o = {.depth = 8, .count = 5};
	struct census c = {0};
	struct mp_err err = {0};
	struct retained r;
	uint64_t sum = 0;

	if (!census_take(&c, img, &err)) {
		if (!retained_take(&r, img, &c, &o, &err)) {
			for (const struct retained_line *l = r.all->child; l; l = l->next)
				sum += l->bytes;
			if (sum != r.all->bytes || sum + r.unreached_bytes != r.live_bytes)
				abort();
		}
		retained_free(&r);
	}
	census_free(&c);
}

static void memory(struct input *in)
{
	const struct arch *arch = input_arch(in);
	struct image_thread th = {.tid = 1, .has_regs = true};
	struct world w = {0};
	struct image img;

	image_init(&img, arch, 1);
	img.page_size = 4096;
	img.ops = &ops;
	img.backend = &w;
	th.regs.size = arch->regs.regset_size;
	input_take(in, th.regs.raw, arch->regs.regset_size);
	th.tls = input_number(in, 8);
	if (vec_push(&img.threads, th))
		abort();
	take_constants(&img, &w);
	while (in->left)
		take_map(&img, &w, in);
	analyse(&img);
	retain(&img);
	image_close(&img);
	vec_free(&w.contents);
}

/* Makes an executable without a build-id, which matches every core. */
static int any_program(char path[64])
{
	GElf_Ehdr eh;
	int fd = input_file("", 0, path);
	Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);

	if (!elf || !gelf_newehdr(elf, ELFCLASS64) || !gelf_getehdr(elf, &eh))
		abort();
	eh.e_type = ET_EXEC;
	eh.e_machine = EM_X86_64;
	eh.e_version = EV_CURRENT;
	if (!gelf_update_ehdr(elf, &eh) || elf_update(elf, ELF_C_WRITE) < 0)
		abort();
	elf_end(elf);
	return fd;
}

static void core(const uint8_t *data, size_t size)
{
	char path[64], exe[64];
	int fd = input_file(data, size, path), exe_fd = any_program(exe);
	struct mp_err err = {0};
	struct image img;

	image_init(&img, arch_native(), 0);
	if (!image_open_core(&img, path, exe, &err)) {
		analyse(&img);
		retain(&img);
	}
	image_close(&img);
	close(fd);
	close(exe_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	elf_version(EV_CURRENT);
	if (input_number(&in, 1))
		memory(&in);
	else
		core(in.at, in.left);
	return 0;
}
