/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of code of other architectures, of libraries that their compilers make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "formats/session.h"
#include "unwind/section.h"
#include "unwind/symbols/symbols.h"

#define SOURCE "int other(int); int twice(int x) { return 2 * other(x); }"

static char folder[] = "/tmp/memprof-unit-XXXXXX";

static void build(const char *compiler, char *path, size_t size)
{
	char line[512];

	snprintf(path, size, "%s/library.so", folder);
	snprintf(line, sizeof(line), "echo '%s' | %s -O2 -x c -shared -fPIC -nostdlib -o %s -",
		 SOURCE, compiler, path);
	assert_int_equal(system(line), 0);
}

static GElf_Shdr section(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Shdr header;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_non_null(elf_section(elf, name, &header));
	elf_end(elf);
	close(fd);
	return header;
}

/* "$a", "$x" and the like are not functions' names. */
static void check_mapping_symbols(const char *compiler)
{
	struct symbols *s = symbols_new(NULL);
	struct mp_module m = {.end = 1ull << 31};
	struct mp_symbol out[4];
	char path[64];
	GElf_Shdr sh;

	assert_non_null(s);
	build(compiler, path, sizeof(path));
	m.path = path;
	assert_int_equal(symbols_add_module(s, &m, NULL), 0);
	sh = section(path, ".plt");
	for (uint64_t at = sh.sh_addr; at < sh.sh_addr + sh.sh_size; at += 4)
		assert_int_equal(symbols_find(s, at | SS_PC_EXACT, out, 4), 0);
	sh = section(path, ".text");
	assert_int_equal(symbols_find(s, sh.sh_addr | SS_PC_EXACT, out, 4), 1);
	assert_string_equal(out[0].raw_function, "twice");
	symbols_free(s);
	assert_int_equal(unlink(path), 0);
}

static void test_mapping_symbols_arm(void **state)
{
	(void)state;
	check_mapping_symbols("clang --target=arm-linux-gnueabihf -fuse-ld=bfd -marm");
	check_mapping_symbols("clang --target=arm-linux-gnueabihf -fuse-ld=bfd -mthumb");
}

static void test_mapping_symbols_aarch64(void **state)
{
	(void)state;
	check_mapping_symbols("clang --target=aarch64-linux-gnu -fuse-ld=bfd");
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mapping_symbols_arm),
	    cmocka_unit_test(test_mapping_symbols_aarch64),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
