/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/table_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "lib/hex.h"
#include "lib/write_all.h"
#include "unwind/build.h"
#include "unwind/rule_set.h"
#include "unwind/table.h"

#define LEAST_ROWS 50000u /* smaller tables are built as fast as they are read */
/* To be changed with struct uw_full and the results of translate.c */
#define VERSION 3u
#define MAGIC	"mpunwind"

/* Header of a cache file.  Rules, addresses of rows, and rule indices of rows follow. */
struct header {
	char magic[8];
	uint32_t version, rule_size, rules, rows, crc, reserved;
};

int unwind_cache_dir(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return fd;
	close(fd);
	return -EACCES;
}

static void name_of(const uint8_t *id, uint32_t length, char name[80])
{
	hex_text(id, length < 32 ? length : 32, name);
}

static size_t payload(const struct header *h)
{
	return h->rules * sizeof(struct uw_full) + h->rows * (sizeof(uint64_t) + sizeof(uint16_t));
}

static bool is_whole(const struct header *h, size_t size)
{
	return size >= sizeof(*h) && !memcmp(h->magic, MAGIC, sizeof(h->magic)) &&
	       h->version == VERSION && h->rule_size == sizeof(struct uw_full) &&
	       h->rules <= UINT16_MAX && h->rows < UINT32_MAX / 16 &&
	       size == sizeof(*h) + payload(h) &&
	       h->crc == crc32(0, (const Bytef *)(h + 1), (uInt)payload(h));
}

/* Copies the rows of the mapped cache file @h to @t and adds their rules to @set. */
static int load_rows(const struct header *h, struct rule_set *set, struct unwind_table *t)
{
	const struct uw_full *full = (const void *)(h + 1);
	const uint64_t *pc = (const void *)(full + h->rules);
	const uint16_t *rule = (const void *)(pc + h->rows);
	uint16_t *id = calloc(h->rules + 1, sizeof(*id));

	memset(t, 0, sizeof(*t));
	t->pc = malloc((h->rows + 1) * sizeof(*t->pc));
	t->rule = malloc((h->rows + 1) * sizeof(*t->rule));
	if (!id || !t->pc || !t->rule) {
		free(id);
		unwind_table_free(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < h->rules; i++)
		id[i] = (uint16_t)rule_set_add(set, &full[i]);
	for (uint32_t i = 0; i < h->rows; i++) {
		t->pc[i] = pc[i];
		t->rule[i] = rule[i] < h->rules ? id[rule[i]] : 0;
	}
	t->n = t->cap = h->rows;
	free(id);
	return 0;
}

static int load_table(int dir, const char *name, struct rule_set *set, struct unwind_table *t)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), ret = -EINVAL;
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return ret;
	if (is_whole(p, (size_t)st.st_size))
		ret = load_rows(p, set, t);
	munmap(p, (size_t)st.st_size);
	return ret;
}

/* Writes a temporary file and renames it, so that readers see a complete file or none. */
static void store(int dir, const char *name, const struct rule_set *set,
		  const struct unwind_table *t)
{
	struct header h = {.magic = MAGIC,
			   .version = VERSION,
			   .rule_size = sizeof(struct uw_full),
			   .rules = rule_set_count(set),
			   .rows = t->n};
	size_t rules = h.rules * sizeof(struct uw_full), rows = h.rows * sizeof(*t->pc);
	char aside[96];
	bool whole;
	int fd;

	h.crc = (uint32_t)crc32(0, (const Bytef *)rule_set_full(set), (uInt)rules);
	h.crc = (uint32_t)crc32(h.crc, (const Bytef *)t->pc, (uInt)rows);
	h.crc = (uint32_t)crc32(h.crc, (const Bytef *)t->rule, (uInt)(h.rows * sizeof(*t->rule)));
	snprintf(aside, sizeof(aside), "%.70s.%d", name, getpid());
	fd = openat(dir, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	whole = write_all(fd, &h, sizeof(h)) && write_all(fd, rule_set_full(set), rules) &&
		write_all(fd, t->pc, rows) && write_all(fd, t->rule, h.rows * sizeof(*t->rule));
	if (close(fd) || !whole || renameat(dir, aside, dir, name))
		unlinkat(dir, aside, 0);
}

/* Stores the rows of @t with only the rules that they use. */
static int store_table(int dir, const char *name, const struct rule_set *set,
		       const struct unwind_table *t)
{
	struct unwind_table own = {.pc = t->pc, .n = t->n};
	struct rule_set *used = rule_set_new();
	uint16_t *id = calloc(UINT16_MAX + 1, sizeof(*id));

	own.rule = malloc((t->n + 1ull) * sizeof(*own.rule));
	if (used && id && own.rule) {
		id[UW_RULE_OUTERMOST] = UW_RULE_OUTERMOST;
		for (uint32_t i = 0; i < t->n; i++) {
			uint16_t rule = t->rule[i];

			if (rule && !id[rule])
				id[rule] = (uint16_t)rule_set_add(used, &rule_set_full(set)[rule]);
			own.rule[i] = id[rule];
		}
		store(dir, name, used, &own);
	}
	free(own.rule);
	free(id);
	rule_set_free(used);
	return 0;
}

int unwind_cache_table(int dir, const uint8_t *id, uint32_t id_length, Elf *elf,
		       struct rule_set *set, struct unwind_table *table)
{
	char name[80] = "";
	int ret;

	if (dir < 0 || !id_length)
		return unwind_table_build(elf, NULL, set, table);
	name_of(id, id_length, name);
	if (!load_table(dir, name, set, table))
		return 0;
	ret = unwind_table_build(elf, NULL, set, table);
	if (!ret && table->n >= LEAST_ROWS)
		ret = store_table(dir, name, set, table);
	return ret;
}
