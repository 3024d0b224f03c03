/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the rules found by analysing code with those of unwind tables, at every call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <unistd.h>
#include "unwind/cfi.h"
#include "unwind/exidx.h"
#include "unwind/flow.h"
#include "unwind/untabled.h"
#include "unwind/table.h"
#include "unwind/rule_set.h"

struct library {
	int fd;
	Elf *elf;
	const struct arch *arch;
	struct rule_set *set;
	struct unwind_table tabled, code;
};

static int push(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	struct library *l = ctx;

	return unwind_table_add(&l->tabled, pc, rule ? rule_set_add(l->set, rule) : 0);
}

static void read_cfi(struct library *l)
{
	struct cfi_fdes fdes = {0};
	struct cfi cfi;

	assert_true(cfi_open(l->elf, l->arch, false, &cfi));
	assert_int_equal(cfi_fdes(&cfi, &fdes), 0);
	vec_for_each (&fdes.list, f) {
		assert_int_equal(cfi_rows(&cfi, f, push, l), 0);
		push(l, f->end, NULL);
	}
	vec_free(&fdes.list);
}

static struct library open_library(const char *path)
{
	struct library l = {.fd = open(path, O_RDONLY), .set = rule_set_new()};
	struct unwind_table functions = {0};
	GElf_Ehdr eh;

	elf_version(EV_CURRENT);
	if (l.fd < 0) {
		print_message("no %s here\n", path);
		rule_set_free(l.set);
		skip();
	}
	l.elf = elf_begin(l.fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(gelf_getehdr(l.elf, &eh));
	l.arch = arch_for_elf(eh.e_ident[EI_CLASS], eh.e_ident[EI_DATA], eh.e_machine);
	assert_non_null(l.arch);
	if (eh.e_machine == EM_ARM)
		assert_int_equal(exidx_each(l.elf, l.arch, push, &l), 0);
	else
		read_cfi(&l);
	/* Uses only the starts of functions from the tables. */
	assert_int_equal(untabled_rows(l.elf, l.arch,
				       eh.e_machine == EM_ARM ? &functions : &l.tabled, l.set,
				       &l.code),
			 0);
	return l;
}

static void close_library(struct library *l)
{
	unwind_table_free(&l->tabled);
	unwind_table_free(&l->code);
	rule_set_free(l->set);
	elf_end(l->elf);
	close(l->fd);
}

/* Return: whether the rules find the caller's registers in the same places; the CFA can be relative
 * to different registers. */
static bool same_caller(const struct uw_full *a, const struct uw_full *b)
{
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if (a->where[i] != b->where[i] || a->off[i] != b->off[i])
			return false;
	}
	return a->cfa_reg != b->cfa_reg || a->cfa_off == b->cfa_off;
}

struct tally {
	uint32_t same, none, differ;
};

static void compare_call(const struct library *l, uint64_t pc, struct tally *t)
{
	uint16_t tabled = unwind_table_find(&l->tabled, pc);
	uint16_t code = unwind_table_find(&l->code, pc);
	const struct uw_full *full = rule_set_full(l->set);

	/* Ignore hand-written code whose table entries do not describe its frame. */
	if (!tabled || tabled == UW_RULE_OUTERMOST || full[tabled].where[UW_REG_PC] != UW_AT_CFA)
		return;
	if (!code)
		t->none++;
	else if (same_caller(&full[tabled], &full[code]))
		t->same++;
	else
		t->differ++;
}

/* A return address is looked up one byte before it, which can be in a delay slot. */
static void compare_section(const struct library *l, const uint8_t *code, const GElf_Shdr *sh,
			    uint8_t mode, struct tally *t)
{
	struct arch_frame_insn insn;

	for (uint64_t at = 0; at < sh->sh_size; at += insn.length) {
		if (!l->arch->unwind.frame_insn(l->arch, code + at, sh->sh_size - at,
						sh->sh_addr + at, mode, &insn))
			return;
		if (insn.flow == ARCH_FLOW_CALL)
			compare_call(l, sh->sh_addr + at + (insn.delay ? insn.length : 0), t);
	}
}

static struct tally compare(const char *path, uint8_t mode)
{
	struct library l = open_library(path);
	struct tally t = {0};
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(l.elf, scn))) {
		GElf_Shdr sh;

		assert_non_null(gelf_getshdr(scn, &sh));
		if (sh.sh_type == SHT_PROGBITS && sh.sh_flags & SHF_EXECINSTR)
			compare_section(&l, elf_rawdata(scn, NULL)->d_buf, &sh, mode, &t);
	}
	print_message("%s: %u calls the same, %u without a rule, %u differ\n", path, t.same, t.none,
		      t.differ);
	close_library(&l);
	return t;
}

static void test_mips64(void **state)
{
	static const char *const paths[] = {"/usr/mips64el-linux-gnuabi64/lib/libc.so.6",
					    "/usr/mips64-linux-gnuabi64/lib/libc.so.6",
					    "/usr/mips64el-linux-gnuabi64/lib/libstdc++.so.6",
					    "/usr/mips64-linux-gnuabi64/lib/libstdc++.so.6"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct tally t = compare(paths[i], 0);

		assert_true(t.same > 3500);
		assert_true(t.differ <= t.same / 1000);
		assert_true(t.none <= t.same / 100);
	}
}

/* The starts and ends of functions are found in the code, also if .ARM.exidx describes them. */
static void test_arm(void **state)
{
	static const char *const paths[] = {"/usr/arm-linux-gnueabihf/lib/libc.so.6",
					    "/usr/arm-linux-gnueabihf/lib/libstdc++.so.6"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct tally t = compare(paths[i], 1);

		assert_true(t.same > 3500);
		assert_true(t.differ <= t.same / 1000);
		assert_int_equal(t.none, 0);
	}
}

/* A call and a return that have instructions in their delay slots. */
static void test_rows(void **state)
{
	static const uint8_t code[] = {
	    0xf0, 0xff, 0xbd, 0x67, /* daddiu sp, sp, -16 */
	    0x08, 0x00, 0xbf, 0xff, /* sd ra, 8(sp) */
	    0x09, 0xf8, 0x20, 0x03, /* jalr t9 */
	    0x00, 0x00, 0xb0, 0xff, /* sd s0, 0(sp) */
	    0x08, 0x00, 0xbf, 0xdf, /* ld ra, 8(sp) */
	    0x08, 0x00, 0xe0, 0x03, /* jr ra */
	    0x10, 0x00, 0xbd, 0x67, /* daddiu sp, sp, 16 */
	};
	struct library l = {.arch = &arch_mips64, .set = rule_set_new()};
	const struct uw_full *f;

	(void)state;
	assert_int_equal(flow_rows(l.arch, code, 0x1000, 0x1000 + sizeof(code), 0, NULL, push, &l),
			 0);
	f = &rule_set_full(l.set)[unwind_table_find(&l.tabled, 0x1000)];
	assert_int_equal(f->where[UW_REG_PC], UW_REG);
	assert_int_equal(f->cfa_off, 0);
	f = &rule_set_full(l.set)[unwind_table_find(&l.tabled, 0x1004)];
	assert_int_equal(f->where[UW_REG_PC], UW_REG);
	assert_int_equal(f->cfa_off, 16);
	f = &rule_set_full(l.set)[unwind_table_find(&l.tabled, 0x100c)];
	assert_int_equal(f->where[UW_REG_PC], UW_AT_CFA);
	assert_int_equal(f->off[UW_REG_PC], -8);
	assert_int_equal(f->where[0], UW_AT_CFA);
	assert_int_equal(f->off[0], -16);
	/* In the jump's delay slot. */
	f = &rule_set_full(l.set)[unwind_table_find(&l.tabled, 0x1018)];
	assert_int_equal(f->where[UW_REG_PC], UW_REG);
	assert_int_equal(f->cfa_off, 0);
	assert_int_equal(unwind_table_find(&l.tabled, 0x101c), 0);
	unwind_table_free(&l.tabled);
	rule_set_free(l.set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows), cmocka_unit_test(test_mips64), cmocka_unit_test(test_arm)};

	return cmocka_run_group_tests_name("unwind/flow", tests, NULL, NULL);
}
