/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "arch/mips64/mips64.h"

#if defined(__mips64)
#include <asm/unistd.h>
_Static_assert(__NR_epoll_wait == 5209 && __NR_epoll_pwait == 5272 && __NR_accept4 == 5293 &&
		   __NR_semtimedop == 5214 && __NR_rt_sigtimedwait == 5126 &&
		   __NR_io_getevents == 5202 && __NR_recvmmsg == 5294 && __NR_write == 5001 &&
		   __NR_writev == 5019 && __NR_sendfile == 5039 && __NR_connect == 5041 &&
		   __NR_sendto == 5043 && __NR_sendmsg == 5045 && __NR_sendmmsg == 5302,
	       "arch/mips64/regs.c, did_nothing()");
_Static_assert(__NR_poll == 5007 && __NR_nanosleep == 5034 && __NR_futex == 5194 &&
		   __NR_clock_nanosleep == 5224,
	       "arch/mips64/sigframe.c, number_in()");
#endif

static const struct arch *const little = &arch_mips64;

static struct arch_regs numbered(void)
{
	struct arch_regs regs = {.size = 360};

	for (int i = 0; i < 45; i++)
		mips_set_reg(&regs, i, 1000 + (uint64_t)i);
	mips_set_reg(&regs, MIPS_R_RESTART, 0);
	return regs;
}

static void test_names(void **state)
{
	(void)state;
	assert_ptr_equal(arch_for_elf(2, 1, 8), &arch_mips64);
	assert_ptr_equal(arch_for_elf(2, 2, 8), &arch_mips64be);
	assert_null(arch_for_elf(1, 1, 8)); /* o32 and n32 */
	assert_int_equal(little->regs.regset_size, 360);
	assert_int_equal(arch_mips64.nr.mmap, arch_mips64be.nr.mmap);
}

static void test_columns(void **state)
{
	/* By DWARF number: s0 to s7, gp, sp, fp, ra. */
	static const uint8_t number[] = {16, 17, 18, 19, 20, 21, 22, 23, 28, 29, 30, 31};
	struct arch_regs regs = numbered();
	uint32_t seen = 0;
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(number); i++) {
		int column = little->unwind.column[number[i]];

		assert_true(column >= 0 && column < UW_REG_PC);
		assert_false(seen >> column & 1);
		seen |= 1u << column;
		assert_true(little->regs.get_column(&regs, column, &value));
		assert_int_equal(value, 1000 + number[i]);
		assert_int_equal(little->perf.column[number[i]], column);
		assert_true(little->perf.regs_mask >> number[i] & 1);
	}
	assert_int_equal(little->unwind.preserved | 1u << UW_REG_LR, seen);
	assert_true(little->regs.get_column(&regs, UW_REG_PC, &value));
	assert_int_equal(value, 1000 + MIPS_R_EPC);
	assert_false(little->regs.get_column(&regs, 11, &value));
	assert_false(little->regs.get_column(&regs, -1, &value));
	assert_false(little->regs.get_column(&regs, UW_MAX_REGS, &value));
	/* k0 and k1 are reserved for the kernel. */
	assert_int_equal(little->perf.regs_mask & 3u << 26, 0);
}

static void test_system_calls(void **state)
{
	const uint64_t args[6] = {1, 2, 3, 4, 5, 6};
	struct arch_regs regs = numbered();

	(void)state;
	mips_set_reg(&regs, MIPS_R_RESTART, 5007);
	little->syscall.set(&regs, 0x1000, 5009, args);
	assert_int_equal(little->regs.get_pc(&regs), 0x1000);
	assert_int_equal(mips_reg(&regs, MIPS_R_V0), 5009);
	assert_int_equal(mips_reg(&regs, MIPS_R_RESTART), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(mips_reg(&regs, MIPS_R_A0 + i), args[i]);
	mips_set_reg(&regs, MIPS_R_V0, 22);
	mips_set_reg(&regs, MIPS_R_A3, 1);
	assert_int_equal(little->syscall.result(&regs), -22);
	mips_set_reg(&regs, MIPS_R_A3, 0);
	assert_int_equal(little->syscall.result(&regs), 22);
	little->emergency.set_return(&regs, 0x2000, 0x3000, 0x4000);
	assert_int_equal(little->regs.get_pc(&regs), 0x2004);
	assert_int_equal(little->regs.get_sp(&regs), 0x3000);
	assert_int_equal(mips_reg(&regs, MIPS_R_RA), 0x4000);
	assert_int_equal(little->syscall.state(&regs), ARCH_NOT_IN_SYSCALL);
}

/* The condition in the kernel's do_signal(): an error to restart, and the number in $0's slot. */
static void test_restart(void **state)
{
	static const uint16_t error[] = {512, 513, 514, 516};
	struct arch_regs regs = numbered();

	(void)state;
	for (size_t i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		mips_set_reg(&regs, MIPS_R_V0, error[i]);
		mips_set_reg(&regs, MIPS_R_RESTART, 0);
		assert_int_equal(little->syscall.state(&regs), ARCH_NOT_IN_SYSCALL);
		mips_set_reg(&regs, MIPS_R_RESTART, 5194);
		assert_int_equal(little->syscall.state(&regs), ARCH_IN_SYSCALL);
		assert_int_equal(little->syscall.number(&regs), 5194);
	}
	assert_true(little->restart.whole(&regs));
	assert_int_equal(mips_reg(&regs, MIPS_R_V0), 513);
	assert_false(little->restart.whole(&regs));
	/* epoll_wait that has failed with EINTR; and close, which has closed the file. */
	mips_set_reg(&regs, MIPS_R_V0, 4);
	mips_set_reg(&regs, MIPS_R_A3, 1);
	mips_set_reg(&regs, MIPS_R_RESTART, 5003);
	assert_false(little->restart.interrupted(&regs));
	mips_set_reg(&regs, MIPS_R_RESTART, 5209);
	assert_true(little->restart.interrupted(&regs));
	assert_int_equal(mips_reg(&regs, MIPS_R_V0), 514);
	mips_set_reg(&regs, MIPS_R_V0, 4); /* four bytes were read */
	mips_set_reg(&regs, MIPS_R_A3, 0);
	mips_set_reg(&regs, MIPS_R_RESTART, 5000);
	assert_false(little->restart.interrupted(&regs));
}

static void test_restarted_number(void **state)
{
	/* li $v0, 5194; move $a3, $0; syscall */
	const uint32_t futex[] = {0x2402144a, 0x00003825, MIPS_SYSCALL};
	const uint32_t other[] = {0x24021388, 0x00003825, MIPS_SYSCALL};

	(void)state;
	assert_int_equal(little->restart.restarted_number((const uint8_t *)futex, sizeof(futex)),
			 5194);
	assert_int_equal(little->restart.restarted_number((const uint8_t *)other, sizeof(other)),
			 -1);
	assert_int_equal(little->restart.restarted_number((const uint8_t *)futex, 0), -1);
}

/* Numbers of system calls as in the architecture's asm/unistd.h. */
static void test_waiting_calls(void **state)
{
	static const uint16_t restartable[] = {5007, 5034, 5194, 5224};
	uint32_t code[2] = {0, MIPS_SYSCALL};

	(void)state;
	for (size_t i = 0; i < sizeof(restartable) / sizeof(restartable[0]); i++) {
		code[0] = 0x24020000u | restartable[i];
		assert_int_equal(
		    little->restart.restarted_number((const uint8_t *)code, sizeof(code)),
		    restartable[i]);
	}
}

static uint64_t word_of(const uint8_t *frame, size_t at)
{
	uint64_t value;

	memcpy(&value, frame + at, sizeof(value));
	return value;
}

/* Offsets as in asm/sigcontext.h and arch/mips/kernel/signal.c, n64. */
static void test_emergency_frame(void **state)
{
	enum { CONTEXT = 24 + 128 + 40, PC = CONTEXT + 576, MASK = CONTEXT + 600 };
	uint64_t fp[33];
	struct arch_regs regs = numbered();
	struct arch_emergency e = {.regs = &regs,
				   .again = -1,
				   .sigmask = {0x1234, 0x5678},
				   .xstate = fp,
				   .xstate_size = sizeof(fp)};
	uint8_t frame[1024 + sizeof(fp)];
	uint32_t used_math;

	(void)state;
	for (int i = 0; i < 33; i++)
		fp[i] = 2000 + (uint64_t)i;
	assert_int_equal(little->emergency.build_frame(frame, 100, 0, &e), 0);
	assert_int_equal(little->emergency.build_frame(frame, sizeof(frame), 0, &e), MASK + 16);
	for (size_t i = 1; i < 32; i++)
		assert_int_equal(word_of(frame, CONTEXT + 8 * i), 1000 + i);
	for (size_t i = 0; i < 32; i++)
		assert_int_equal(word_of(frame, CONTEXT + 256 + 8 * i), 2000 + i);
	assert_int_equal(word_of(frame, CONTEXT + 512), 1000 + MIPS_R_HI);
	assert_int_equal(word_of(frame, CONTEXT + 544), 1000 + MIPS_R_LO);
	assert_int_equal(word_of(frame, PC), 1000 + MIPS_R_EPC);
	assert_int_equal(word_of(frame, MASK), 0x1234);
	assert_int_equal(word_of(frame, MASK + 8), 0x5678);
	memcpy(&used_math, frame + PC + 12, sizeof(used_math));
	assert_int_equal(used_math & 1, 1);
	/* The interrupted call is made again: its number, its $a3, its address. */
	e.again = 5007;
	little->emergency.build_frame(frame, sizeof(frame), 0, &e);
	assert_int_equal(word_of(frame, CONTEXT + 8 * MIPS_R_V0), 5007);
	assert_int_equal(word_of(frame, CONTEXT + 8 * MIPS_R_A3), 1000 + MIPS_R_K0);
	assert_int_equal(word_of(frame, PC), 1000 + MIPS_R_EPC - 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_columns),
	    cmocka_unit_test(test_system_calls),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_restarted_number),
	    cmocka_unit_test(test_waiting_calls),
	    cmocka_unit_test(test_emergency_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
