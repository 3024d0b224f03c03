/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests on Debian's mips64el packages, from the sysroot of the cross build (scripts/sysroot):
 * relocates and evaluates the start of every function that is hooked, in both byte orders (big
 * endian: the same words with swapped bytes), and with an island in reach of a short jump or of a
 * long jump only.  SYSROOT: the folder of sysroots, by default build/sysroot.
 */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "mips64_evaluate.h"

#define BASE  0xfff1000000ull
#define NEAR  0xfff8000040ull
#define FAR   0xffd8000040ull
#define DESC  0xfff8000000ull
#define AGENT 0xfff9000120ull

static const char *const hooked[] = {
#define X(symbol, kind, size, sibling) symbol,
#include "inject/hooks/hooks.def"
#undef X
};

struct counts {
	int hooked, all, planned, far, refused_far;
};

static bool is_hooked(const char *name)
{
	for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++) {
		if (!strcmp(hooked[i], name))
			return true;
	}
	return false;
}

static enum arch_refusal check(const struct arch *a, const uint8_t *code, size_t size,
			       uint64_t addr, uint64_t slot, const char *name)
{
	struct arch_patch p;
	enum arch_refusal r = a->patch.plan(code, size, addr, slot, slot + 48, &p);

	if (r == ARCH_OK && !ev_same(a, code, addr, &p, slot, slot + 48, DESC, AGENT))
		fail_msg("%s: the copy does something else", name);
	return r;
}

static void check_function(const char *name, const uint8_t *code, const GElf_Sym *sym,
			   struct counts *n)
{
	uint64_t addr = BASE + sym->st_value;
	uint8_t *swapped = malloc(sym->st_size);
	enum arch_refusal r, big;

	for (size_t i = 0; i < sym->st_size; i++)
		swapped[i] = code[i ^ 3];
	r = check(&arch_mips64, code, sym->st_size, addr, NEAR, name);
	big = check(&arch_mips64be, swapped, sym->st_size, addr, NEAR, name);
	assert_int_equal(r, big);
	n->all++;
	n->planned += r == ARCH_OK;
	if (is_hooked(name)) {
		n->hooked++;
		if (r != ARCH_OK)
			fail_msg("%s: %s", name, arch_refusal_text(r));
	}
	r = check(&arch_mips64, code, sym->st_size, addr, FAR, name);
	assert_int_equal(r, check(&arch_mips64be, swapped, sym->st_size, addr, FAR, name));
	n->far += r == ARCH_OK;
	if (is_hooked(name) && r != ARCH_OK) {
		n->refused_far++;
		print_message("# %s, from another region: %s\n", name, arch_refusal_text(r));
	}
	free(swapped);
}

/* Return: the bytes of @sym in its executable section. */
static const uint8_t *bytes_of(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
		    sym->st_value - sh.sh_addr >= sh.sh_size ||
		    sym->st_size > sh.sh_size - (sym->st_value - sh.sh_addr))
			continue;
		return (const uint8_t *)elf_getdata(scn, NULL)->d_buf +
		       (sym->st_value - sh.sh_addr);
	}
	return NULL;
}

static void check_symbols(Elf *elf, struct counts *n)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; gelf_getsym(data, i, &sym); i++) {
			const uint8_t *code = bytes_of(elf, &sym);

			if (GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_size &&
			    sym.st_shndx != SHN_UNDEF && code && sym.st_size % 4 == 0)
				check_function(elf_strptr(elf, sh.sh_link, sym.st_name), code, &sym,
					       n);
		}
	}
}

static void check_library(const char *path, int least)
{
	const char *root = getenv("SYSROOT");
	struct counts n = {0};
	char full[400];
	Elf *elf;
	int fd;

	snprintf(full, sizeof(full), "%s/mips64/%s", root ? root : "build/sysroot", path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		print_message("# no %s: scripts/sysroot makes it\n", full);
		skip();
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	check_symbols(elf, &n);
	print_message(
	    "# %s: %d hooked functions; of %d in all %d planned, %d from another region\n", path,
	    n.hooked, n.all, n.planned, n.far);
	assert_true(n.hooked >= least);
	elf_end(elf);
	close(fd);
}

static void test_glibc(void **state)
{
	(void)state;
	check_library("lib/mips64el-linux-gnuabi64/libc.so.6", 15);
}

static void test_musl(void **state)
{
	(void)state;
	check_library("lib/mips64el-linux-musl/libc.so", 12);
}

static void test_jemalloc(void **state)
{
	(void)state;
	check_library("usr/lib/mips64el-linux-gnuabi64/libjemalloc.so.2", 20);
}

static void test_tcmalloc(void **state)
{
	(void)state;
	check_library("usr/lib/mips64el-linux-gnuabi64/libtcmalloc_minimal.so.4", 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_glibc),
	    cmocka_unit_test(test_musl),
	    cmocka_unit_test(test_jemalloc),
	    cmocka_unit_test(test_tcmalloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
