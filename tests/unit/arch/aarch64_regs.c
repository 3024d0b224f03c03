/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"

static const struct arch *const a64 = &arch_aarch64;

/* x0 to x30, sp, pc, pstate: the value of each is its index + 1000. */
static struct arch_regs example(void)
{
	struct arch_regs r = {.size = 272};
	uint64_t value;

	for (uint64_t i = 0; i < 34; i++) {
		value = 1000 + i;
		memcpy(r.raw + 8 * i, &value, sizeof(value));
	}
	return r;
}

static uint64_t x(const struct arch_regs *r, int n)
{
	uint64_t value;

	memcpy(&value, r->raw + 8 * n, sizeof(value));
	return value;
}

static void test_found_by_elf_header(void **state)
{
	(void)state;
	assert_ptr_equal(arch_for_elf(ELFCLASS64, ELFDATA2LSB, EM_AARCH64), a64);
	assert_null(arch_for_elf(ELFCLASS32, ELFDATA2LSB, EM_AARCH64));
	assert_null(arch_for_elf(ELFCLASS64, ELFDATA2MSB, EM_AARCH64));
}

static void test_registers(void **state)
{
	struct arch_regs r = example();
	uint64_t value;

	(void)state;
	assert_int_equal(a64->regs.get_sp(&r), 1031);
	assert_int_equal(a64->regs.get_pc(&r), 1032);
	/* DWARF registers x19 to x30 and sp have columns. */
	for (int dwarf = 0; dwarf < ARCH_DWARF_REGS; dwarf++) {
		bool kept = dwarf >= 19 && dwarf <= 31;

		assert_int_equal(a64->unwind.column[dwarf] >= 0, kept);
		assert_int_equal(a64->regs.get_column(&r, a64->unwind.column[dwarf], &value), kept);
		if (kept)
			assert_int_equal(value, 1000 + dwarf);
	}
	assert_true(a64->regs.get_column(&r, UW_REG_PC, &value) && value == 1032);
	/* perf has the same registers under other numbers. */
	for (int bit = 0; bit < 33; bit++) {
		assert_true(a64->perf.regs_mask >> bit & 1);
		if (a64->perf.column[bit] >= 0) {
			assert_true(a64->regs.get_column(&r, a64->perf.column[bit], &value));
			assert_int_equal(value, 1000 + bit);
		}
	}
	assert_int_equal(a64->perf.regs_mask >> 33, 0);
}

static void test_calls(void **state)
{
	static const uint64_t args[6] = {1, 2, 3, 4, 5, 6};
	struct arch_regs r = example(), before = r;
	const uint8_t svc[] = {0x01, 0, 0, 0xd4}, nop[] = {0x1f, 0x20, 0x03, 0xd5};

	(void)state;
	assert_true(a64->syscall.before(&r, svc, sizeof(svc)));
	assert_false(a64->syscall.before(&r, nop, sizeof(nop)));
	assert_false(a64->syscall.before(&r, svc, 3));
	assert_int_equal(a64->syscall.number(&r), 1008);
	a64->syscall.set(&r, 0x4000, a64->nr.mmap, args);
	assert_int_equal(a64->regs.get_pc(&r), 0x4000);
	assert_int_equal(x(&r, 8), 222);
	assert_memory_equal(r.raw, args, sizeof(args));
	assert_memory_equal(r.raw + 72, before.raw + 72, 272 - 72 - 16);
	r = before;
	a64->emergency.set_return(&r, 0x4000, 0x7000, 0x5000);
	assert_int_equal(a64->regs.get_pc(&r), 0x4004);
	assert_int_equal(a64->regs.get_sp(&r), 0x7000);
	assert_int_equal(x(&r, 30), 0x5000);
	assert_int_equal(x(&r, 0), 1000);
}

static void test_restarted_number(void **state)
{
	/* mov x8, #115; mov x0, #0; svc #0 */
	static const uint8_t code[] = {0x68, 0x0e, 0x80, 0xd2, 0x00, 0x00,
				       0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
	/* mov x8, #64 (write); svc #0 */
	static const uint8_t other[] = {0x08, 0x08, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

	(void)state;
	assert_int_equal(a64->restart.restarted_number(code, sizeof(code)), 115);
	assert_int_equal(a64->restart.restarted_number(code + 4, sizeof(code) - 4), -1);
	assert_int_equal(a64->restart.restarted_number(other, sizeof(other)), -1);
}

/* Offsets as in arch/arm64/kernel/signal.c. */
static void test_emergency_frame(void **state)
{
	struct arch_regs r = example();
	uint8_t fp[528], out[5000];
	struct arch_emergency e = {.regs = &r,
				   .again = -1,
				   .sigmask = {0x1122334455667788},
				   .xstate = fp,
				   .xstate_size = sizeof(fp)};
	uint32_t head[2];

	(void)state;
	for (size_t i = 0; i < sizeof(fp); i++)
		fp[i] = (uint8_t)(i * 7);
	assert_int_equal(a64->emergency.build_frame(out, 4687, 0x7000, &e), 0);
	assert_int_equal(a64->emergency.build_frame(out, sizeof(out), 0x7000, &e),
			 128 + 176 + 288 + 4096);
	assert_memory_equal(out + 128 + 40, &e.sigmask, 8);
	assert_memory_equal(out + 128 + 176 + 8, r.raw, 272);
	memcpy(head, out + 592, sizeof(head));
	assert_int_equal(head[0], 0x46508001); /* FPSIMD_MAGIC */
	assert_int_equal(head[1], 528);
	assert_memory_equal(out + 600, fp + 512, 8); /* fpsr, fpcr */
	assert_memory_equal(out + 608, fp, 512);
	memcpy(head, out + 592 + 528, sizeof(head));
	assert_int_equal(head[0] | head[1], 0);
	/* The interrupted call is made again, with its number. */
	e.again = 101;
	assert_int_equal(a64->emergency.build_frame(out, sizeof(out), 0x7000, &e), 4688);
	memcpy(r.raw + 64, &e.again, 8);
	assert_memory_equal(out + 128 + 176 + 8, r.raw, 272);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_found_by_elf_header),
	    cmocka_unit_test(test_registers),
	    cmocka_unit_test(test_calls),
	    cmocka_unit_test(test_restarted_number),
	    cmocka_unit_test(test_emergency_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
