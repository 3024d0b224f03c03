/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Unwind tables of a large library agree with libdw, and are the same from the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <dwarf.h>
#include <errno.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unwind/table_cache.h"
#include "unwind/table.h"
#include "unwind/rule_set.h"
#include "unwind/build_id.h"

#define LIBRARY "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"
#define SAMPLES 3000

static char path[] = "/tmp/memprof-unit-XXXXXX";

struct fixture {
	int fd, dir;
	Elf *elf;
	uint8_t id[32];
	uint32_t id_length;
	struct rule_set *set;
	struct unwind_table table;
};

static void load(struct fixture *f)
{
	f->set = rule_set_new();
	assert_non_null(f->set);
	assert_int_equal(unwind_cache_table(f->dir, f->id, f->id_length, f->elf, f->set, &f->table),
			 0);
	assert_true(f->table.n > 500000);
}

static void drop(struct fixture *f)
{
	unwind_table_free(&f->table);
	rule_set_free(f->set);
}

static struct fixture open_library(void)
{
	struct fixture f = {0};

	elf_version(EV_CURRENT);
	f.fd = open(LIBRARY, O_RDONLY);
	assert_true(f.fd >= 0);
	f.elf = elf_begin(f.fd, ELF_C_READ_MMAP, NULL);
	f.id_length = (uint32_t)elf_build_id(f.elf, f.id);
	assert_true(f.id_length > 0);
	f.dir = unwind_cache_dir(path);
	assert_true(f.dir >= 0);
	return f;
}

static void close_library(struct fixture *f)
{
	elf_end(f->elf);
	close(f->fd);
	close(f->dir);
}

static void assert_same_rows(const struct fixture *a, const struct fixture *b)
{
	assert_int_equal(a->table.n, b->table.n);
	for (uint32_t i = 0; i < a->table.n; i++) {
		if (a->table.pc[i] != b->table.pc[i] ||
		    memcmp(&rule_set_full(a->set)[a->table.rule[i]],
			   &rule_set_full(b->set)[b->table.rule[i]], sizeof(struct uw_full)))
			fail_msg("row %u differs", i);
	}
}

/* Return: the path of the only file in the cache directory. */
static char *kept_file(void)
{
	struct dirent *e;
	DIR *d = opendir(path);
	char *name = NULL;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		assert_null(name);
		assert_true(asprintf(&name, "%s/%s", path, e->d_name) > 0);
	}
	closedir(d);
	return name;
}

/* Checks that the CFA of a row is that of libdw.  Return: false for rows with expressions. */
static bool assert_cfa(struct fixture *f, Dwarf_CFI *cfi, uint32_t row)
{
	const struct uw_full *full = &rule_set_full(f->set)[f->table.rule[row]];
	Dwarf_Frame *frame;
	Dwarf_Op *op;
	size_t n;

	if (!f->table.rule[row] || dwarf_cfi_addrframe(cfi, f->table.pc[row], &frame))
		return false;
	assert_int_equal(dwarf_frame_cfa(frame, &op, &n), 0);
	if (n != 1 || op->atom != DW_OP_bregx) {
		free(frame);
		return false;
	}
	assert_int_equal(full->cfa_kind, UW_CFA_REG);
	assert_int_equal(full->cfa_reg, op->number);
	assert_int_equal(full->cfa_off, op->number2);
	free(frame);
	return true;
}

static void test_against_libdw(void **state)
{
	struct fixture f = open_library();
	Dwarf_CFI *cfi = dwarf_getcfi_elf(f.elf);
	uint32_t compared = 0;

	(void)state;
	close(f.dir);
	f.dir = -1;
	load(&f);
	for (uint32_t i = 0; i < SAMPLES; i++)
		compared += assert_cfa(&f, cfi, (uint32_t)((uint64_t)f.table.n * i / SAMPLES));
	assert_true(compared > SAMPLES * 8 / 10);
	dwarf_cfi_end(cfi);
	drop(&f);
	close_library(&f);
}

static void test_kept(void **state)
{
	struct fixture built = open_library(), kept = open_library(), again = open_library();
	char *name;
	struct stat st;
	int fd;

	(void)state;
	load(&built);
	name = kept_file();
	assert_non_null(name);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	load(&kept);
	assert_same_rows(&built, &kept);
	/* If the file is damaged or truncated, the table is built again. */
	fd = open(name, O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, st.st_size / 2), 1);
	load(&again);
	assert_same_rows(&built, &again);
	drop(&again);
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	load(&again);
	assert_same_rows(&built, &again);
	unlink(name);
	free(name);
	drop(&built);
	drop(&kept);
	drop(&again);
	close_library(&built);
	close_library(&kept);
	close_library(&again);
}

static void test_foreign_directory(void **state)
{
	(void)state;
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(unwind_cache_dir(path), -EACCES);
	assert_int_equal(chmod(path, 0700), 0);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(path) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_libdw),
					   cmocka_unit_test(test_kept),
					   cmocka_unit_test(test_foreign_directory)};

	return cmocka_run_group_tests_name("unwind/cache", tests, setup, teardown);
}
