/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* arch.unwind.signal_frame, on frames that memprof builds, and on one that the kernel built. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>
#include "arch/arch.h"

#define PC  0x1234567654321ull
#define PC4 0x76543210ull
#define SP  0x1111222233330ull
#define SP4 0x33445560ull

static uint64_t word_at(const struct arch *a, const uint8_t *frame, size_t pc_at, int16_t offset)
{
	return arch_word(a, frame + pc_at + offset);
}

/* Return: the offset of the word @value, which @frame contains once. */
static size_t find_word(const struct arch *a, const uint8_t *frame, size_t n, uint64_t value)
{
	size_t found = n;

	for (size_t at = 0; at + a->word_size <= n; at += a->word_size) {
		if (arch_word(a, frame + at) != value)
			continue;
		assert_int_equal(found, n);
		found = at;
	}
	assert_true(found < n);
	return found;
}

/* @sp_at, @user_flags_at: offsets in NT_PRSTATUS. */
static void check_built(const struct arch *a, size_t sp_at, size_t user_flags_at,
			uint64_t user_flags)
{
	static uint8_t frame[8192] __attribute__((aligned(64))), fp[2048];
	uint64_t pc = a->word_size == 4 ? PC4 : PC, sp = a->word_size == 4 ? SP4 : SP;
	struct arch_regs regs = {.size = a->regs.regset_size};
	struct arch_emergency e = {.regs = &regs, .again = -1, .xstate = fp, .xstate_size = 576};
	size_t n, at;

	if (user_flags_at)
		memcpy(regs.raw + user_flags_at, &user_flags, a->word_size);
	a->regs.set_pc(&regs, pc);
	memcpy(regs.raw + sp_at, &sp, a->word_size);
	n = a->emergency.build_frame(frame, sizeof(frame), 0x10000, &e);
	assert_true(n > 0);
	at = find_word(a, frame, n, pc);
	assert_int_equal(word_at(a, frame, at, a->unwind.signal_frame.flags) &
			     a->unwind.signal_frame.mask,
			 a->unwind.signal_frame.value);
	assert_int_equal(word_at(a, frame, at, a->unwind.signal_frame.sp), sp);
}

static void test_built(void **state)
{
	(void)state;
	check_built(&arch_x86_64, 19 * 8, 17 * 8, 0x33); /* rsp and cs in struct user_regs_struct */
	check_built(&arch_aarch64, 31 * 8, 0, 0);
	check_built(&arch_arm, 13 * 4, 16 * 4, 0x10); /* sp and cpsr */
	check_built(&arch_mips64, 29 * 8, 0, 0);
}

/* A processor's register set can be larger than what sigreturn accepts of a thread that does not use all
 * of it: with AMX, 11,008 bytes instead of 2,816. */
static void test_only_state_in_use(void **state)
{
	static uint8_t frame[16384] __attribute__((aligned(64))), fp[11008];
	struct arch_regs regs = {.size = arch_x86_64.regs.regset_size};
	struct arch_emergency e = {
	    .regs = &regs, .again = -1, .xstate = fp, .xstate_size = sizeof(fp)};
	size_t least = arch_x86_64.emergency.build_frame(frame, sizeof(frame), 0x10000, &e), more;

	(void)state;
	assert_in_range(least, 576, 2048);
	fp[512] = 1 << 2; /* XSTATE_BV: the upper halves of ymm0 to ymm15 */
	more = arch_x86_64.emergency.build_frame(frame, sizeof(frame), 0x10000, &e);
#if defined(__x86_64__)
	assert_int_equal(more, __builtin_cpu_supports("avx") ? least + 256 : least);
#else
	assert_int_equal(more, least);
#endif
}

static volatile bool right;
static char *alternate;

static void handler(int sig, siginfo_t *info, void *context)
{
	const struct arch *a = arch_native();
	const uint8_t *frame = context;
	const ucontext_t *uc = context;
#if defined(__x86_64__)
	const void *pc = &uc->uc_mcontext.gregs[REG_RIP];
	uint64_t sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	const void *pc = &uc->uc_mcontext.pc;
	uint64_t sp = uc->uc_mcontext.sp;
#elif defined(__arm__)
	const void *pc = &uc->uc_mcontext.arm_pc;
	uint64_t sp = uc->uc_mcontext.arm_sp;
#elif defined(__mips64)
	const void *pc = &uc->uc_mcontext.pc;
	uint64_t sp = uc->uc_mcontext.gregs[29];
#endif
	size_t at = (size_t)((const uint8_t *)pc - frame);

	(void)sig, (void)info;
	right = (word_at(a, frame, at, a->unwind.signal_frame.flags) &
		 a->unwind.signal_frame.mask) == a->unwind.signal_frame.value &&
		word_at(a, frame, at, a->unwind.signal_frame.sp) == sp &&
		word_at(a, frame, at, a->unwind.signal_frame.alt_start) == (uintptr_t)alternate &&
		word_at(a, frame, at, a->unwind.signal_frame.alt_size) == (uint64_t)SIGSTKSZ;
}

static void test_real(void **state)
{
	struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t stack = {.ss_size = (size_t)SIGSTKSZ};

	(void)state;
	stack.ss_sp = alternate = malloc(stack.ss_size);
	assert_non_null(alternate);
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	raise(SIGUSR1);
	assert_true(right);
	stack.ss_flags = SS_DISABLE;
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	free(alternate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_built),
					   cmocka_unit_test(test_only_state_in_use),
					   cmocka_unit_test(test_real)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
