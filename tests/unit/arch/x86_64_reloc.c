/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the results of patch.plan() and patch.encode_slot() with expected bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"

#define AT   0x10001000ull
#define SLOT 0x10002000ull
#define COPY 0x10002040ull
#define BODY 64 /* bytes of a function, filled with nops and a ret */

static enum arch_refusal plan_at(const char *head, size_t n, size_t size, uint64_t at,
				 uint64_t slot, uint64_t copy, struct arch_patch *p)
{
	uint8_t code[256];

	memset(code, 0x90, sizeof(code));
	code[size - 1] = 0xc3;
	memcpy(code, head, n);
	return arch_x86_64.patch.plan(code, size, at, slot, copy, p);
}

#define PLAN(head, p) plan_at(head, sizeof(head) - 1, BODY, AT, SLOT, COPY, p)

static void expect(const struct arch_patch *p, const char *copy, size_t n)
{
	assert_int_equal(p->relocated_length, n);
	assert_memory_equal(p->relocated, copy, n);
}

#define EXPECT(p, copy) expect(p, copy, sizeof(copy) - 1)

static void test_plain(void **state)
{
	struct arch_patch p;

	(void)state;
	/* push rbp; mov rbp, rsp; sub rsp, 16 */
	assert_int_equal(PLAN("\x55\x48\x89\xe5\x48\x83\xec\x10", &p), ARCH_OK);
	assert_int_equal(p.addr, AT);
	assert_int_equal(p.length, 8);
	assert_int_equal(p.insns, 3);
	assert_memory_equal(p.old_off, "\0\1\4", 3);
	assert_memory_equal(p.new_off, "\0\1\4", 3);
	/* jmp SLOT: 0x10002000 - 0x10001005; then nops */
	assert_memory_equal(p.new_bytes, "\xe9\xfb\x0f\0\0\x90\x90\x90", 8);
	/* back: 0x10001008 - (0x10002048 + 5) */
	EXPECT(&p, "\x55\x48\x89\xe5\x48\x83\xec\x10\xe9\xbb\xef\xff\xff");
}

static void test_landing_pad_stays(void **state)
{
	struct arch_patch p;

	(void)state;
	/* endbr64; push r12; push rbp; push rbx; sub rsp, 8 */
	assert_int_equal(PLAN("\xf3\x0f\x1e\xfa\x41\x54\x55\x53\x48\x83\xec\x08", &p), ARCH_OK);
	assert_int_equal(p.addr, AT + 4);
	assert_int_equal(p.length, 8);
	assert_memory_equal(p.old_off, "\0\2\3\4", 4);
	assert_memory_equal(p.new_bytes, "\xe9\xf7\x0f\0\0\x90\x90\x90", 8);
	EXPECT(&p, "\x41\x54\x55\x53\x48\x83\xec\x08\xe9\xbf\xef\xff\xff");
}

static void test_pc_relative(void **state)
{
	struct arch_patch p;

	(void)state;
	/* mov rax, [rip+0x1000] means AT + 0x1007; from the copy: less 0x1040 */
	assert_int_equal(PLAN("\x48\x8b\x05\0\x10\0\0", &p), ARCH_OK);
	EXPECT(&p, "\x48\x8b\x05\xc0\xff\xff\xff\xe9\xbb\xef\xff\xff");
	/* mov dword [rip+0x100], 0x100: the immediate stays */
	assert_int_equal(PLAN("\xc7\x05\0\1\0\0\0\1\0\0", &p), ARCH_OK);
	EXPECT(&p, "\xc7\x05\xc0\xf0\xff\xff\0\1\0\0\xe9\xbb\xef\xff\xff");
	/* vmovdqu ymm0, [rip+0x100] */
	assert_int_equal(PLAN("\xc5\xfe\x6f\x05\0\1\0\0", &p), ARCH_OK);
	EXPECT(&p, "\xc5\xfe\x6f\x05\xc0\xf0\xff\xff\xe9\xbb\xef\xff\xff");
	/* lea eax, [eip+0x100]: 32-bit arithmetic does not move */
	assert_int_equal(PLAN("\x67\x8d\x05\0\1\0\0", &p), ARCH_REFUSE_INSN);
}

static void test_branches(void **state)
{
	struct arch_patch p;

	(void)state;
	/* test rdi, rdi; je +0x20: becomes rel32 to AT + 0x25 */
	assert_int_equal(PLAN("\x48\x85\xff\x74\x20", &p), ARCH_OK);
	assert_memory_equal(p.new_off, "\0\3", 2);
	EXPECT(&p, "\x48\x85\xff\x0f\x84\xdc\xef\xff\xff\xe9\xb7\xef\xff\xff");
	/* jne rel32 outwards */
	assert_int_equal(PLAN("\x0f\x85\0\1\0\0", &p), ARCH_OK);
	EXPECT(&p, "\x0f\x85\xc0\xf0\xff\xff\xe9\xbb\xef\xff\xff");
	/* nop; jmp +0x10 over code (inside the function): 0x1013 - 0x2046 */
	assert_int_equal(PLAN("\x66\x90\x90\xeb\x10", &p), ARCH_OK);
	EXPECT(&p, "\x66\x90\x90\xe9\xcd\xef\xff\xff\xe9\xb8\xef\xff\xff");
	assert_int_equal(PLAN("\xe3\x10\x48\x89\xe5", &p), ARCH_REFUSE_INSN); /* jrcxz */
	assert_int_equal(PLAN("\xe2\x10\x48\x89\xe5", &p), ARCH_REFUSE_INSN); /* loop */
	assert_int_equal(PLAN("\xc7\xf8\x10\0\0\0", &p), ARCH_REFUSE_INSN);   /* xbegin */
	assert_int_equal(PLAN("\xff\xd0\x48\x89\xe5", &p), ARCH_REFUSE_INSN); /* call rax */
	assert_int_equal(PLAN("\x55\xe8\0\1\0\0", &p), ARCH_REFUSE_CALL);
	assert_int_equal(PLAN("\x90\x90\x90\x0f\x05", &p), ARCH_REFUSE_INSN); /* syscall */
	/* A system call right after the window does not matter. */
	assert_int_equal(PLAN("\xb8\x09\0\0\0\x0f\x05", &p), ARCH_OK);
	assert_int_equal(p.length, 5);
}

static void test_thunks(void **state)
{
	struct arch_patch p;

	(void)state;
	/* The whole function is a jump: 5 bytes, with padding behind it, after a landing pad. */
	assert_int_equal(plan_at("\xe9\0\1\0\0", 5, 5, AT, SLOT, COPY, &p), ARCH_OK);
	EXPECT(&p, "\xe9\xc0\xf0\xff\xff\xe9\xbb\xef\xff\xff");
	assert_int_equal(
	    plan_at("\xe9\0\1\0\0\x66\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 16, 16, AT, SLOT, COPY, &p),
	    ARCH_OK);
	assert_int_equal(
	    plan_at("\xf3\x0f\x1e\xfa\xe9\0\1\0\0\xcc\xcc\xcc", 12, 12, AT, SLOT, COPY, &p),
	    ARCH_OK);
	/* jmp *slot(%rip) */
	assert_int_equal(plan_at("\xff\x25\0\1\0\0", 6, 6, AT, SLOT, COPY, &p), ARCH_OK);
	EXPECT(&p, "\xff\x25\xc0\xf0\xff\xff\xe9\xbb\xef\xff\xff");
	/* Two bytes are not enough for anything. */
	assert_int_equal(plan_at("\xeb\x40", 2, 2, AT, SLOT, COPY, &p), ARCH_REFUSE_SHORT);
}

static void test_foreign(void **state)
{
	struct arch_patch p;

	(void)state;
	assert_int_equal(PLAN("\xcc\x48\x89\xe5\x53", &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(PLAN("\xe9\0\x10\0\0\x53\x50", &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(PLAN("\xff\x25\0\0\0\0\1\2\3\4\5\6\7\x08\x53", &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(PLAN("\xf3\x0f\x1e\xfa\xcc\x53\x53\x53", &p), ARCH_REFUSE_FOREIGN);
	assert_int_equal(PLAN("\x55\xcc\x48\x89\xe5", &p), ARCH_REFUSE_FOREIGN);
}

static void test_short(void **state)
{
	struct arch_patch p;

	(void)state;
	assert_int_equal(plan_at("", 0, 1, AT, SLOT, COPY, &p), ARCH_REFUSE_SHORT); /* ret */
	assert_int_equal(plan_at("\x31\xc0", 2, 3, AT, SLOT, COPY, &p), ARCH_REFUSE_SHORT);
	assert_int_equal(plan_at("\x31\xc0\xc3", 3, 16, AT, SLOT, COPY, &p), ARCH_REFUSE_SHORT);
	assert_int_equal(arch_x86_64.patch.plan((const uint8_t *)"", 0, AT, SLOT, COPY, &p),
			 ARCH_REFUSE_SHORT);
	/* mov eax, 1; ret: just long enough; the window can end with the function's ret. */
	assert_int_equal(plan_at("\xb8\1\0\0\0", 5, 6, AT, SLOT, COPY, &p), ARCH_OK);
	assert_int_equal(plan_at("\x48\x89\xf8\x90\xc3", 5, 5, AT, SLOT, COPY, &p), ARCH_OK);
	/* The symbol ends in the middle of an instruction. */
	assert_int_equal(plan_at("\x48\x81\xec\0", 4, 5, AT, SLOT, COPY, &p), ARCH_REFUSE_INSN);
}

static void test_branch_into(void **state)
{
	struct arch_patch p;
	uint8_t code[BODY];

	(void)state;
	/* push rbp; mov rbp, rsp; sub ...; then a jne at 16 to each address of the entry */
	for (int to = -1; to <= 9; to++) {
		enum arch_refusal want = to >= 0 && to < 8 ? ARCH_REFUSE_BRANCH_INTO : ARCH_OK;

		memset(code, 0x90, sizeof(code));
		memcpy(code, "\x55\x48\x89\xe5\x48\x83\xec\x10", 8);
		code[16] = 0x75;
		code[17] = (uint8_t)(to - 18);
		assert_int_equal(arch_x86_64.patch.plan(code, BODY, AT, SLOT, COPY, &p), want);
		/* It is also found after a byte that is no instruction. */
		code[15] = 0x06;
		assert_int_equal(arch_x86_64.patch.plan(code, BODY, AT, SLOT, COPY, &p), want);
	}
	/* A call of the function's own start is recursion. */
	memset(code, 0x90, sizeof(code));
	memcpy(code + 16, "\xe8\xeb\xff\xff\xff", 5);
	assert_int_equal(arch_x86_64.patch.plan(code, BODY, AT, SLOT, COPY, &p), ARCH_OK);
	/* Code computes an address inside the window: lea rax, [rip-20] */
	memcpy(code + 16, "\x48\x8d\x05\xec\xff\xff\xff", 7);
	assert_int_equal(arch_x86_64.patch.plan(code, BODY, AT, SLOT, COPY, &p),
			 ARCH_REFUSE_BRANCH_INTO);
	/* A branch in the window to another instruction of the window. */
	assert_int_equal(PLAN("\x74\x01\x90\x90\x90", &p), ARCH_REFUSE_BRANCH_INTO);
}

static void test_reach(void **state)
{
	static const char load[] = "\x48\x8b\x05\0\0\0\x40",
			  push[] = "\x55\x48\x89\xe5\x48\x83\xec\x10";
	const uint64_t far = AT + (1ull << 40);
	struct arch_patch p;

	(void)state;
	assert_int_equal(plan_at(push, 8, BODY, AT, far, far + 64, &p), ARCH_REFUSE_REACH);
	/* The slot is in reach of the jump, but the copy is not in reach of its operand. */
	assert_int_equal(plan_at(load, 7, BODY, AT, AT - 0x70000000, AT - 0x70000000 + 64, &p),
			 ARCH_REFUSE_REACH);
	assert_int_equal(plan_at("\x55\x0f\x84\0\0\0\x40", 7, BODY, AT, AT - 0x70000000,
				 AT - 0x70000000 + 64, &p),
			 ARCH_REFUSE_REACH);
	/* A far copy jumps back through an address. */
	assert_int_equal(plan_at(push, 8, BODY, AT, SLOT, far, &p), ARCH_OK);
	EXPECT(&p, "\x55\x48\x89\xe5\x48\x83\xec\x10\xff\x25\0\0\0\0\x08\x10\0\x10\0\0\0\0");
}

static void test_slot(void **state)
{
	uint8_t out[32];

	(void)state;
	assert_int_equal(
	    arch_x86_64.patch.encode_slot(out, SLOT, 0x1122334455667788, SLOT + 0x1000), 15);
	assert_memory_equal(out, "\x49\xbb\x88\x77\x66\x55\x44\x33\x22\x11\xe9\xf1\x0f\0\0", 15);
	assert_int_equal(arch_x86_64.patch.encode_slot(out, SLOT, 1, SLOT + (1ull << 40)), 24);
	assert_memory_equal(out, "\x49\xbb\1\0\0\0\0\0\0\0\xff\x25\0\0\0\0\0\x20\0\x10\0\1\0\0",
			    24);
}

/* Random bytes must not crash patch.plan(), and its results must be within their limits. */
static void test_random_bytes(void **state)
{
	struct arch_patch p;
	int planned = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 100000; round++) {
		size_t size = (size_t)(rand() % 40);
		/* Of exactly this size, so that a sanitizer detects a read after its end. */
		uint8_t *code = malloc(size + 1);

		for (size_t i = 0; i < size; i++)
			code[i] = (uint8_t)rand();
		if (arch_x86_64.patch.plan(code, size, AT, SLOT, COPY, &p) == ARCH_OK) {
			planned++;
			assert_in_range(p.length, 5, 19);
			assert_true(p.addr + p.length <= AT + size);
			assert_in_range(p.insns, 1, sizeof(p.old_off));
			assert_in_range(p.relocated_length, 10, 64);
			for (int i = 1; i < p.insns; i++) {
				assert_true(p.old_off[i] > p.old_off[i - 1]);
				assert_true(p.new_off[i] > p.new_off[i - 1]);
			}
		}
		free(code);
	}
	assert_in_range(planned, 1000, 99000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),	 cmocka_unit_test(test_landing_pad_stays),
	    cmocka_unit_test(test_pc_relative),	 cmocka_unit_test(test_branches),
	    cmocka_unit_test(test_thunks),	 cmocka_unit_test(test_foreign),
	    cmocka_unit_test(test_short),	 cmocka_unit_test(test_branch_into),
	    cmocka_unit_test(test_reach),	 cmocka_unit_test(test_slot),
	    cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
