/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ARM's exception handling tables: compares all entries of two libraries with readelf's output, and
 * tests hand-made entries like those of other compilers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/vec.h"
#include "unwind/exidx.h"

struct entry {
	uint64_t start;
	bool known;
	struct uw_full rule;
};

struct entries {
	VEC(struct entry) list;
};

static int push(void *ctx, uint64_t start, const struct uw_full *rule)
{
	struct entries *e = ctx;
	struct entry entry = {.start = start, .known = rule != NULL};

	if (rule)
		entry.rule = *rule;
	return vec_push(&e->list, entry);
}

/* The rule that readelf's lines describe for one function. */
struct reading {
	uint64_t start;
	bool cannot, unread; /* unread: readelf does not print entries with a personality */
	int base, at, from[16];
	uint32_t popped;
};

static void read_pop(struct reading *r, const char *line)
{
	for (const char *p = strpbrk(line, "rD"); p; p = strpbrk(p + 1, "rD")) {
		int reg = atoi(p + 1);

		if (*p == 'r') {
			r->popped |= 1u << reg;
			r->from[reg] = r->at;
		}
		r->at += *p == 'r' ? 4 : 8;
	}
}

static void read_line(struct reading *r, const char *line)
{
	const char *text;
	int n;

	if (strstr(line, "[cantunwind]"))
		r->cannot = true;
	if (strstr(line, "Personality"))
		r->unread = true;
	if ((text = strstr(line, "vsp = vsp + ")))
		r->at += atoi(text + 12);
	else if ((text = strstr(line, "vsp = vsp - ")))
		r->at -= atoi(text + 12);
	else if ((text = strstr(line, "vsp = r")) && sscanf(text, "vsp = r%d", &n) == 1)
		r->base = n;
	else if ((text = strstr(line, "pop {")))
		read_pop(r, text + 5);
}

static void assert_reading(const struct reading *r, const struct entry *e)
{
	const struct arch *arch = &arch_arm;
	int ra = r->popped >> 15 & 1 ? 15 : 14;

	assert_int_equal(e->start, r->start);
	/* memprof has no rule that restores the stack pointer from the stack. */
	if (r->popped >> 13 & 1)
		assert_false(e->known);
	else if (e->known == r->cannot)
		fail_msg("%lx: known %d", (unsigned long)r->start, e->known);
	if (!e->known || r->unread)
		return;
	if (e->rule.cfa_reg != (uint8_t)arch->unwind.column[r->base] || e->rule.cfa_off != r->at)
		fail_msg("%lx: CFA", (unsigned long)r->start);
	for (int i = 4; i < 12; i++) {
		int column = arch->unwind.column[i];

		assert_int_equal(e->rule.where[column], r->popped >> i & 1 ? UW_AT_CFA : UW_SAME);
		if (r->popped >> i & 1)
			assert_int_equal(e->rule.off[column], r->from[i] - r->at);
	}
	if (r->popped >> ra & 1) {
		assert_int_equal(e->rule.where[UW_REG_PC], UW_AT_CFA);
		assert_int_equal(e->rule.off[UW_REG_PC], r->from[ra] - r->at);
	} else {
		assert_int_equal(e->rule.where[UW_REG_PC], UW_REG);
		assert_int_equal(e->rule.off[UW_REG_PC], UW_REG_LR);
	}
}

static void compare(const char *path, size_t at_least)
{
	struct reading r = {0};
	struct entries e = {0};
	char command[256], line[1024];
	int fd = open(path, O_RDONLY);
	size_t n = 0;
	FILE *readelf;
	Elf *elf;

	elf_version(EV_CURRENT);
	if (fd < 0) {
		print_message("no %s here\n", path);
		skip();
	}
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_int_equal(exidx_each(elf, &arch_arm, push, &e), 0);
	snprintf(command, sizeof(command), "readelf -u %s 2>/dev/null", path);
	readelf = popen(command, "r");
	assert_non_null(readelf);
	while (fgets(line, sizeof(line), readelf)) {
		if (!strncmp(line, "0x", 2)) {
			if (r.base)
				assert_reading(&r, &e.list.at[n++]);
			assert_true(n < e.list.n);
			r = (struct reading){.start = strtoul(line, NULL, 16), .base = 13};
		}
		read_line(&r, line);
	}
	assert_int_not_equal(pclose(readelf), -1);
	assert_reading(&r, &e.list.at[n++]);
	assert_int_equal(n, e.list.n);
	assert_true(n >= at_least);
	print_message("%s: %zu entries equal\n", path, n);
	vec_free(&e.list);
	elf_end(elf);
	close(fd);
}

static void test_libraries(void **state)
{
	(void)state;
	compare("/usr/arm-linux-gnueabihf/lib/libc.so.6", 800);
	compare("/usr/arm-linux-gnueabihf/lib/libstdc++.so.6", 2000);
}

static void test_opcodes(void **state)
{
	/* vsp = r11; vsp -= 4; pop {r11, lr} */
	static const uint8_t frame[] = {0x9b, 0x40, 0x84, 0x80};
	/* vsp += 0x204 + (2 << 2); pop {d8-d9} as by FSTMFDX, then FSTMFDD; pop {r0, r3}; finish */
	static const uint8_t large[] = {0xb2, 0x02, 0xb9, 0xd1, 0xb1, 0x09, 0xb0, 0x00};
	static const uint8_t refuse[] = {0x80, 0x00}, popped_sp[] = {0x82, 0x00},
			     spare[] = {0xb1, 0x00}, rebased[] = {0xa8, 0x97}, cut[] = {0xb2};
	struct uw_full f;

	(void)state;
	assert_true(exidx_rule(frame, sizeof(frame), &arch_arm, &f));
	assert_int_equal(f.cfa_reg, arch_arm.unwind.column[11]);
	assert_int_equal(f.cfa_off, 4);
	assert_int_equal(f.off[arch_arm.unwind.column[11]], -8);
	assert_int_equal(f.off[UW_REG_PC], -4);
	assert_true(exidx_rule(large, sizeof(large), &arch_arm, &f));
	assert_int_equal(f.cfa_reg, UW_REG_SP);
	assert_int_equal(f.cfa_off, 0x204 + 8 + 20 + 16 + 8);
	assert_int_equal(f.where[UW_REG_PC], UW_REG);
	assert_false(exidx_rule(refuse, sizeof(refuse), &arch_arm, &f));
	assert_false(exidx_rule(popped_sp, sizeof(popped_sp), &arch_arm, &f));
	assert_false(exidx_rule(spare, sizeof(spare), &arch_arm, &f));
	assert_false(exidx_rule(rebased, sizeof(rebased), &arch_arm, &f));
	assert_false(exidx_rule(cut, sizeof(cut), &arch_arm, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_opcodes),
					   cmocka_unit_test(test_libraries)};

	return cmocka_run_group_tests_name("unwind/exidx", tests, NULL, NULL);
}
