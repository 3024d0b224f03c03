/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Types by damaged debug information, of a process whose memory is nonsense: variables and blocks are
 * full of addresses of other blocks, of inner ones, and of numbers.  Nothing may crash, loop, or claim
 * more than there is.  The program is compiled in formats with different encodings of types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "leaks/types/block_names.h"

#define HEAP   0x10000000ull
#define BASE   0x40000000ull
#define BLOCKS 400
#define ROUNDS 100 /* of each format */

static char directory[] = "/tmp/memprof-unit-XXXXXX";

static const char source[] =
    "#include <deque>\n#include <list>\n#include <map>\n#include <memory>\n#include <string>\n"
    "#include <unordered_map>\n#include <vector>\n"
    "namespace app { struct node { node *next; union { int *i; long n; } u; char tail[]; };\n"
    "struct all { std::vector<std::string> v; std::map<int, std::shared_ptr<node>> m;\n"
    "std::unordered_map<long, std::unique_ptr<node>> h; std::list<node *> l; std::deque<all> *d; "
    "};\n"
    "all one, *pointer, *array[9]; thread_local node *t; }\n"
    "typedef struct _GList { void *data; struct _GList *next, *prev; } GList; GList *list;\n"
    "struct _GHashTable; struct _GHashTable *table; std::vector<bool> bits;\n"
    "int main() { app::one.v.emplace_back(); app::one.m[1]; app::one.h[1]; "
    "app::one.l.push_back(0);\n"
    "app::t = 0; bits.push_back(true); return !list + !table + app::one.d->size(); }\n";

/* A process with one file and one heap. */
struct world {
	char path[256];
	uint64_t seed;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* The word at an address is always the same: most are addresses of blocks, many are small numbers. */
static uint64_t word_at(const struct world *w, uint64_t addr)
{
	uint64_t seed = (addr + w->seed) * 0x9e3779b97f4a7c15ull | 1, r;

	for (int i = 0; i < 3; i++)
		r = next_random(&seed);
	switch (r % 8) {
	case 0:
		return 0;
	case 1:
		return r >> 8 & 15;
	case 2:
		return HEAP + (r >> 8) % (BLOCKS * 1024);
	case 3: /* near: begin and end of an array */
		return HEAP + ((addr - HEAP) / 1024 * 1024 + (r >> 8 & 7) * 8) % (BLOCKS * 1024);
	default:
		return HEAP + (r >> 8) % BLOCKS * 1024;
	}
}

static size_t fetch(struct image *img, uint64_t addr, void *to, size_t len)
{
	const struct world *w = img->backend;
	size_t done = 0;

	for (; done < len; done++) {
		const struct image_map *m = image_map_at(img, addr + done);
		uint64_t word;

		if (!m)
			break;
		word = word_at(w, (addr + done) & ~7ull);
		((uint8_t *)to)[done] = ((const uint8_t *)&word)[(addr + done) & 7];
	}
	return done;
}

static uint64_t present(struct image *img, const struct image_map *map, uint64_t *addr)
{
	(void)img;
	return *addr < map->end ? map->end : 0;
}

static int open_file(struct image *img, const struct image_map *map)
{
	const struct world *w = img->backend;

	(void)map;
	return open(w->path, O_RDONLY | O_CLOEXEC);
}

static void no_close(struct image *img)
{
	(void)img;
}

static const struct image_ops ops = {
    .fetch = fetch, .present = present, .open_file = open_file, .close = no_close};

static void add_map(struct image *img, uint64_t start, uint64_t size, const char *path)
{
	const struct image_map m = {
	    .start = start, .end = start + size, .read = true, .write = true, .path = strdup(path)};

	assert_int_equal(vec_push(&img->maps, m), 0);
}

/* Return: how many blocks were named by debug information. */
static uint32_t take(struct world *w)
{
	static struct heap_block block[BLOCKS];
	struct image_thread thread = {.tid = 1, .tls = BASE + 0x2000};
	struct block_names names = {0};
	struct graph g = {0};
	struct image img;
	uint32_t named = 0;
	uint64_t most = 0;

	image_init(&img, arch_native(), 1);
	img.backend = w;
	img.ops = &ops;
	img.page_size = 4096;
	add_map(&img, HEAP, BLOCKS * 1024, "[heap]");
	add_map(&img, BASE, 0x100000, w->path);
	assert_int_equal(vec_push(&img.threads, thread), 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		block[i] = (struct heap_block){HEAP + 1024ull * i, 24 + 16 * (i * 7 % 60)};
		most += block[i].size;
	}
	assert_int_equal(graph_init(&g, img.arch, block, BLOCKS), 0);
	struct modules *m = modules_new(&img);
	assert_non_null(m);
	assert_int_equal(block_names_take(&names, &g, &img, m), 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		const struct block_name *name = block_names_of(&names, i);

		named += name && name->source == NAME_DWARF;
	}
	vec_for_each (&names.list, it) {
		/* A block belongs to one container. */
		assert_true(it->sum.blocks <= BLOCKS);
		assert_true(it->sum.bytes <= most + 24 * it->sum.elements);
		assert_true(it->sum.unused <= most);
	}
	block_names_free(&names);
	modules_free(m);
	graph_free(&g);
	image_close(&img);
	return named;
}

/* Finds the range of a file in which the debug information is. */
static bool find_section(const char *path, const char *name, uint64_t *offset, uint64_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *scn = NULL;
	bool found = false;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) ||
		    strcmp(elf_strptr(elf, names, sh.sh_name), name) != 0)
			continue;
		*offset = sh.sh_offset;
		*size = sh.sh_size;
		found = true;
	}
	elf_end(elf);
	close(fd);
	return found;
}

static void damage(const char *path, const char *section, uint64_t *seed, bool undo)
{
	static uint8_t old[16];
	static uint64_t at[16];
	static int n;
	uint64_t offset, size;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	if (!undo && find_section(path, section, &offset, &size)) {
		for (n = 0; n < 16; n++) {
			uint8_t byte = (uint8_t)next_random(seed);

			at[n] = offset + next_random(seed) % size;
			assert_int_equal(pread(fd, &old[n], 1, (off_t)at[n]), 1);
			assert_int_equal(pwrite(fd, &byte, 1, (off_t)at[n]), 1);
		}
	} else {
		while (n--)
			assert_int_equal(pwrite(fd, &old[n], 1, (off_t)at[n]), 1);
		n = 0;
	}
	close(fd);
}

static void check(const char *flags)
{
	static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_info"};
	struct world w = {.seed = 1};
	uint32_t named = 0;
	char command[512];

	snprintf(w.path, sizeof(w.path), "%s/it", directory);
	snprintf(command, sizeof(command), "g++ -std=c++17 %s -no-pie -o %s %s/it.cc", flags,
		 w.path, directory);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 20; i++, w.seed++)
		named += take(&w);
	/* The undamaged program's variables lead to some. */
	assert_true(named > 100);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t seed = (uint64_t)i * 977 + 13;

		w.seed = seed;
		damage(w.path, sections[i % 3], &seed, false);
		(void)take(&w);
		damage(w.path, NULL, &seed, true);
	}
}

static void dwarf4(void **state)
{
	(void)state;
	check("-gdwarf-4 -fdebug-types-section");
}

static void dwarf5(void **state)
{
	(void)state;
	check("-gdwarf-5");
}

static void split(void **state)
{
	(void)state;
	check("-gdwarf-5 -gsplit-dwarf");
}

static int make_source(void **state)
{
	char path[256];
	FILE *f;

	(void)state;
	elf_version(EV_CURRENT);
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/it.cc", directory);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fputs(source, f);
	return fclose(f);
}

static int remove_all(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(dwarf4),
	    cmocka_unit_test(dwarf5),
	    cmocka_unit_test(split),
	};

	return cmocka_run_group_tests(tests, make_source, remove_all);
}
