/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests on Debian's arm64 packages, from the sysroot of the cross build (scripts/sysroot):
 * relocates and evaluates the start of every function that is hooked, and compares the decoder with
 * capstone for every instruction.  SYSROOT: the folder of sysroots, by default build/sysroot.
 */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "aarch64_evaluate.h"

static const char *const hooked[] = {
#define X(symbol, kind, size, sibling) symbol,
#include "inject/hooks/hooks.def"
#undef X
};

struct library {
	int fd;
	Elf *elf;
};

/* Return: whether the library exists; if not, the test is to be skipped. */
static bool library_open(struct library *l, const char *path)
{
	const char *root = getenv("SYSROOT");
	char full[400];

	snprintf(full, sizeof(full), "%s/aarch64/%s", root ? root : "build/sysroot", path);
	l->fd = open(full, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		print_message("# no %s: scripts/sysroot makes it\n", full);
		skip();
		return false;
	}
	elf_version(EV_CURRENT);
	l->elf = elf_begin(l->fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(l->elf);
	return true;
}

static void library_close(struct library *l)
{
	elf_end(l->elf);
	close(l->fd);
}

/* Return: the bytes at an address of an executable section; @left gets the number up to its end. */
static const uint8_t *section_of(struct library *l, uint64_t addr, size_t *left)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(l->elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
		    addr - sh.sh_addr >= sh.sh_size)
			continue;
		*left = sh.sh_size - (addr - sh.sh_addr);
		return (const uint8_t *)elf_getdata(scn, NULL)->d_buf + (addr - sh.sh_addr);
	}
	return NULL;
}

static bool is_hooked(const char *name)
{
	for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++) {
		if (!strcmp(hooked[i], name))
			return true;
	}
	return false;
}

static void check_function(struct library *l, const char *name, const GElf_Sym *sym)
{
	const uint64_t base = 0xffff80000000ull, far = 100 << 20;
	const uint64_t addr = base + sym->st_value, copy = base + far + 96;
	enum arch_refusal refusal;
	struct arch_patch p;
	size_t left = 0;
	const uint8_t *code = section_of(l, sym->st_value, &left);

	assert_non_null(code);
	assert_true(sym->st_size && sym->st_size <= left);
	refusal = arch_aarch64.patch.plan(code, sym->st_size, addr, base + far + 64, copy, &p);
	if (refusal != ARCH_OK)
		print_message("# %s: %s\n", name, arch_refusal_text(refusal));
	assert_int_equal(refusal, ARCH_OK);
	assert_true(eval_same(code, addr, &p, copy));
}

/* Return: the number of functions in the library that are hooked. */
static int check_functions(struct library *l)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int n = 0;

	while ((scn = elf_nextscn(l->elf, scn))) {
		Elf_Data *data;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(l->elf, sh.sh_link, sym.st_name);

			if (sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    !is_hooked(name))
				continue;
			check_function(l, name, &sym);
			n++;
		}
	}
	return n;
}

static void check_library(const char *path, int least)
{
	struct library l;

	if (!library_open(&l, path))
		return;
	assert_true(check_functions(&l) >= least);
	library_close(&l);
}

static void test_glibc(void **state)
{
	(void)state;
	check_library("lib/aarch64-linux-gnu/libc.so.6", 15);
}

static void test_musl(void **state)
{
	(void)state;
	check_library("lib/aarch64-linux-musl/libc.so", 12);
}

static void test_jemalloc(void **state)
{
	(void)state;
	check_library("usr/lib/aarch64-linux-gnu/libjemalloc.so.2", 20);
}

static void test_tcmalloc(void **state)
{
	(void)state;
	check_library("usr/lib/aarch64-linux-gnu/libtcmalloc_minimal.so.4", 20);
}

static enum arch_insn_kind kind_of(csh handle, const cs_insn *i)
{
	static const struct {
		const char *name;
		enum arch_insn_kind kind;
	} special[] = {{"adr", ARCH_INSN_PC_RELATIVE}, {"adrp", ARCH_INSN_PC_RELATIVE},
		       {"svc", ARCH_INSN_SYSCALL},     {"brk", ARCH_INSN_TRAP},
		       {"hlt", ARCH_INSN_TRAP},	       {"b", ARCH_INSN_JUMP},
		       {"bl", ARCH_INSN_CALL},	       {"blr", ARCH_INSN_CALL},
		       {"br", ARCH_INSN_INDIRECT},     {"ret", ARCH_INSN_RETURN}};
	const cs_arm64 *a = &i->detail->arm64;

	for (size_t k = 0; k < sizeof(special) / sizeof(special[0]); k++) {
		if (!strcmp(i->mnemonic, special[k].name))
			return special[k].kind;
	}
	if (eval_branches(i))
		return ARCH_INSN_COND_JUMP;
	if ((!strncmp(i->mnemonic, "ldr", 3) || !strcmp(i->mnemonic, "prfm")) && a->op_count == 2 &&
	    a->operands[1].type == ARM64_OP_IMM)
		return ARCH_INSN_PC_RELATIVE;
	if (i->id == ARM64_INS_HINT && (a->operands[0].imm & ~6) == 32)
		return ARCH_INSN_LANDING_PAD;
	assert_false(cs_insn_group(handle, i, CS_GRP_JUMP));
	return ARCH_INSN_PLAIN;
}

static void check_insn(csh handle, const cs_insn *i)
{
	const cs_arm64 *a = &i->detail->arm64;
	struct arch_insn insn;

	assert_true(arch_aarch64.patch.decode(i->bytes, 4, i->address, &insn));
	if (insn.kind != kind_of(handle, i))
		print_message("# %s %s: kind %d\n", i->mnemonic, i->op_str, insn.kind);
	assert_int_equal(insn.kind, kind_of(handle, i));
	assert_int_equal(insn.length, 4);
	if (insn.has_target)
		assert_int_equal(insn.target, a->operands[a->op_count - 1].imm);
}

/* Compares kind and target of all instructions of glibc. */
static void test_decoder(void **state)
{
	Elf_Scn *scn = NULL;
	struct library l;
	GElf_Shdr sh;
	csh handle;
	cs_insn *i;
	int n = 0;

	(void)state;
	if (!library_open(&l, "lib/aarch64-linux-gnu/libc.so.6"))
		return;
	cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle);
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	i = cs_malloc(handle);
	while ((scn = elf_nextscn(l.elf, scn))) {
		const uint8_t *code;
		uint64_t addr;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		code = elf_getdata(scn, NULL)->d_buf;
		addr = sh.sh_addr;
		for (size_t left = sh.sh_size; left >= 4;) {
			if (cs_disasm_iter(handle, &code, &left, &addr, i)) {
				check_insn(handle, i);
				n++;
			} else {
				code += 4;
				left -= 4;
				addr += 4;
			}
		}
	}
	assert_true(n > 200000);
	cs_free(i, 1);
	cs_close(&handle);
	library_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_glibc),    cmocka_unit_test(test_musl),
	    cmocka_unit_test(test_jemalloc), cmocka_unit_test(test_tcmalloc),
	    cmocka_unit_test(test_decoder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
