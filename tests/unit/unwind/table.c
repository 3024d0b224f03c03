/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares compact tables of libraries of this machine and of cross compilers with readelf's output
 * for the same CFI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "unwind/rule.h"
#include "unwind/table.h"
#include "unwind/rule_set.h"
#include "unwind/build.h"

#define COLUMNS 24

static const struct arch *arch;
static unsigned registers; /* rules that were compared, of registers except the return address */

/* Return: the column of a register with readelf's name; -1: rules do not have it. */
static int column_of(const char *name)
{
	static const char *const x86[] = {[3] = "rbx",	[6] = "rbp",  [7] = "rsp",  [12] = "r12",
					  [13] = "r13", [14] = "r14", [15] = "r15", [16] = "ra"};
	int n;

	if (!strcmp(name, "ra"))
		return UW_REG_PC;
	for (size_t i = 0; arch->unwind.call_push && i < sizeof(x86) / sizeof(x86[0]); i++) {
		if (x86[i] && !strcmp(name, x86[i]))
			return (int)i;
	}
	if (arch->unwind.call_push)
		return -1;
	if (!strcmp(name, "sp"))
		return UW_REG_SP;
	return sscanf(name, "%*[xr]%d", &n) == 1 && n < ARCH_DWARF_REGS ? arch->unwind.column[n]
									: -1;
}

static int split(char *line, char **word)
{
	int n = 0;

	for (char *p = strtok(line, " \n"); p && n < COLUMNS; p = strtok(NULL, " \n"))
		word[n++] = p;
	return n;
}

/* Parses "rsp+16" as a register's number and an offset. */
static bool parse_cfa(const char *text, int *reg, int *off)
{
	char name[8];

	if (sscanf(text, "%7[a-z0-9]%d", name, off) != 2)
		return false;
	*reg = column_of(name);
	return *reg >= 0;
}

static void assert_register(const struct uw_full *f, int reg, const char *rule)
{
	int off;

	if (sscanf(rule, "c%d", &off) == 1) {
		assert_int_equal(f->where[reg], UW_AT_CFA);
		assert_int_equal(f->off[reg], off);
	} else if (reg == UW_REG_PC) {
		assert_int_equal(f->where[reg], UW_REG);
		assert_int_equal(f->off[reg], UW_REG_LR);
	} else if (!strcmp(rule, "u") || !strcmp(rule, "s")) {
		assert_int_equal(f->where[reg], UW_SAME);
	}
}

/* Checks a row: address, CFA, a rule for each named register; other registers keep their value. */
static bool check_row(const struct unwind_table *t, struct rule_set *set, char **head, int nhead,
		      char **word)
{
	uint64_t pc = strtoull(word[0], NULL, 16);
	const struct uw_full *f;
	uint32_t seen = 0;
	int reg, off;
	uint16_t id;

	if (arch->unwind.call_push && !strcmp(word[nhead - 1], "u")) /* the outermost frame */
		return false;
	if (!parse_cfa(word[1], &reg, &off))
		return false;
	id = unwind_table_find(t, pc);
	if (!id)
		return false; /* an expression that memprof does not support; the caller counts it
			       */
	if (id == UW_RULE_OUTERMOST && !arch->unwind.call_push)
		return false;
	assert_int_not_equal(id, UW_RULE_OUTERMOST);
	f = &rule_set_full(set)[rule_set_rules(set)[id].full];
	if (f->cfa_kind != UW_CFA_REG)
		return false;
	assert_int_equal(f->cfa_reg, reg);
	if (f->cfa_off != off)
		fail_msg("%s: CFA %s, not %d", word[0], word[1], f->cfa_off);
	for (int i = 2; i < nhead; i++) {
		int named = column_of(head[i]);

		if (named < 0 || named == UW_REG_SP)
			continue;
		assert_register(f, named, word[i]);
		registers += named != UW_REG_PC;
		seen |= 1u << named;
	}
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if ((arch->unwind.preserved & ~seen) >> i & 1 && f->where[i] == UW_UNDEFINED)
			fail_msg("%s %s: column %d reads as undefined", word[0], word[1], i);
	}
	return true;
}

static int open_or_skip(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0) {
		print_message("no %s here\n", path);
		skip();
	}
	return fd;
}

static const struct arch *arch_of(Elf *elf)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	GElf_Ehdr eh;

	assert_non_null(gelf_getehdr(elf, &eh));
	assert_non_null(arch_for_elf(ident[EI_CLASS], ident[EI_DATA], eh.e_machine));
	return arch_for_elf(ident[EI_CLASS], ident[EI_DATA], eh.e_machine);
}

static void compare(const char *path, unsigned at_least)
{
	char command[256], line[1024], heading[1024], *head[COLUMNS], *word[COLUMNS];
	struct rule_set *set = rule_set_new();
	int fd = open_or_skip(path), nhead = 0;
	unsigned rows = 0, skipped = 0;
	struct unwind_table t;
	FILE *readelf;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	arch = arch_of(elf);
	registers = 0;
	assert_int_equal(unwind_table_build(elf, NULL, set, &t), 0);
	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp %s", path);
	readelf = popen(command, "r");
	assert_non_null(readelf);
	while (fgets(line, sizeof(line), readelf)) {
		if (strstr(line, "LOC ")) {
			strcpy(heading, line);
			nhead = split(heading, head);
		} else if (strstr(line, " CIE ") || strstr(line, " FDE ")) {
			nhead = strstr(line, " FDE ") ? -1 : 0;
		} else if (nhead > 2 && split(line, word) == nhead && strlen(word[0]) == 16 &&
			   strcmp(word[0], "0000000000000000")) {
			check_row(&t, set, head, nhead, word) ? rows++ : skipped++;
		}
	}
	assert_int_not_equal(pclose(readelf), -1);
	print_message("%s: %u rows equal, %u not comparable\n", path, rows, skipped);
	assert_true(rows >= at_least);
	assert_true(skipped < rows / 20 + 20);
	/* Otherwise column_of() does not know readelf's names. */
	assert_true(registers > rows);
	unwind_table_free(&t);
	rule_set_free(set);
	elf_end(elf);
	close(fd);
}

static void test_libc(void **state)
{
	(void)state;
	compare("/lib/x86_64-linux-gnu/libc.so.6", 15000);
}

static void test_loader(void **state)
{
	(void)state;
	compare("/lib64/ld-linux-x86-64.so.2", 2000);
}

static void test_libstdcxx(void **state)
{
	(void)state;
	compare("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 10000);
}

static void test_aarch64(void **state)
{
	(void)state;
	compare("/usr/aarch64-linux-gnu/lib/libc.so.6", 10000);
	compare("/usr/aarch64-linux-gnu/lib/libstdc++.so.6", 15000);
}

static void test_mips64(void **state)
{
	(void)state;
	compare("/usr/mips64el-linux-gnuabi64/lib/libc.so.6", 4000);
	compare("/usr/mips64el-linux-gnuabi64/lib/libstdc++.so.6", 15000);
}

static void test_mips64be(void **state)
{
	(void)state;
	compare("/usr/mips64-linux-gnuabi64/lib/libc.so.6", 4000);
	compare("/usr/mips64-linux-gnuabi64/lib/libstdc++.so.6", 15000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_libc),      cmocka_unit_test(test_loader),
	    cmocka_unit_test(test_libstdcxx), cmocka_unit_test(test_aarch64),
	    cmocka_unit_test(test_mips64),    cmocka_unit_test(test_mips64be)};

	return cmocka_run_group_tests_name("unwind/table", tests, NULL, NULL);
}
