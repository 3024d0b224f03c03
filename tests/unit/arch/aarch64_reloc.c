/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the results of patch.plan() and patch.encode_slot() with expected words, and evaluates
 * the copy of each form of instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "aarch64_evaluate.h"

#define AT    0xaaaa00001000ull
#define SLOT  0xaaaa00002040ull
#define COPY  0xaaaa00002060ull
#define WORDS 16 /* of a function, filled with nops and a ret */

#define NOP	0xd503201fu
#define RET	0xd65f03c0u
#define BTI_C	0xd503245fu
#define PACIASP 0xd503233fu
#define AUTIASP 0xd50323bfu
#define STP	0xa9bc7bfdu /* stp x29, x30, [sp, #-64]! */

static enum arch_refusal plan_words(const uint32_t *head, size_t n, size_t words, uint64_t slot,
				    uint64_t copy, struct arch_patch *p, uint32_t *code)
{
	for (size_t i = 0; i < words; i++)
		code[i] = NOP;
	code[words - 1] = RET;
	memcpy(code, head, n * 4);
	return arch_aarch64.patch.plan((const uint8_t *)code, words * 4, AT, slot, copy, p);
}

#define PLAN(p, ...)                                                                               \
	plan_words((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4,   \
		   WORDS, SLOT, COPY, p, code)

static uint32_t word(const uint8_t *at)
{
	uint32_t w;

	memcpy(&w, at, sizeof(w));
	return w;
}

static uint32_t b(uint64_t from, uint64_t to)
{
	return 0x14000000u | ((uint32_t)((to - from) / 4) & 0x3ffffff);
}

static void test_plain(void **state)
{
	uint32_t code[WORDS];
	struct arch_patch p;

	(void)state;
	assert_int_equal(PLAN(&p, STP), ARCH_OK);
	assert_int_equal(p.addr, AT);
	assert_int_equal(p.length, 4);
	assert_int_equal(p.insns, 1);
	assert_int_equal(word(p.new_bytes), b(AT, SLOT));
	assert_int_equal(p.relocated_length, 8);
	assert_int_equal(word(p.relocated), STP);
	assert_int_equal(word(p.relocated + 4), b(COPY + 4, AT + 4));
}

static void test_landing_pads(void **state)
{
	uint32_t code[WORDS];
	struct arch_patch p;

	(void)state;
	assert_int_equal(PLAN(&p, BTI_C, STP), ARCH_OK);
	assert_int_equal(p.addr, AT + 4);
	assert_int_equal(p.length, 4);
	assert_int_equal(word(p.relocated), STP);
	/* The signature is removed before the slot and made again in the copy. */
	assert_int_equal(PLAN(&p, PACIASP, STP), ARCH_OK);
	assert_int_equal(p.addr, AT);
	assert_int_equal(p.length, 8);
	assert_int_equal(word(p.new_bytes), PACIASP);
	assert_int_equal(word(p.new_bytes + 4), b(AT + 4, COPY + 12));
	assert_int_equal(word(p.relocated), PACIASP);
	assert_int_equal(word(p.relocated + 4), STP);
	assert_int_equal(word(p.relocated + 8), b(COPY + 8, AT + 8));
	assert_int_equal(word(p.relocated + 12), AUTIASP);
	assert_int_equal(word(p.relocated + 16), b(COPY + 16, SLOT));
	assert_int_equal(p.relocated_length, 20);
	/* The register is signed before autiasp, and not signed after it. */
	assert_int_equal(p.insns, 4);
	assert_memory_equal(p.old_off, "\0\4\4\0", 4);
	assert_memory_equal(p.new_off, "\0\4\14\20", 4);
	assert_int_equal(PLAN(&p, 0xd503237f, STP), ARCH_OK); /* pacibsp */
	assert_int_equal(word(p.relocated + 12), 0xd50323ff);
	/* Nothing follows a landing pad. */
	assert_int_equal(plan_words((const uint32_t[]){BTI_C}, 1, 1, SLOT, COPY, &p, code),
			 ARCH_REFUSE_SHORT);
	assert_int_equal(plan_words((const uint32_t[]){PACIASP}, 1, 1, SLOT, COPY, &p, code),
			 ARCH_REFUSE_SHORT);
}

/* All forms of instructions that depend on their address, near and far from their copy. */
static void test_evaluated(void **state)
{
	static const uint32_t form[] = {
	    0x10000400 | 3,  /* adr x3, +128 */
	    0x70ffffe0 | 30, /* adr x30, -1 */
	    0xb0000005,	     /* adrp x5 */
	    0x90ffffe9,	     /* adrp x9, backwards */
	    0x18000400 | 1,  /* ldr w1, +128 */
	    0x58000400 | 2,  /* ldr x2 */
	    0x98fffc00 | 4,  /* ldrsw x4, backwards */
	    0xd8000400,	     /* prfm pldl1keep */
	    0x1c000400 | 6,  /* ldr s6 */
	    0x5c000400 | 7,  /* ldr d7 */
	    0x9c000400 | 8,  /* ldr q8 */
	    0x54000400,	     /* b.eq */
	    0x54fffc0b,	     /* b.lt, backwards */
	    0x34000400,	     /* cbz w0 */
	    0xb5000401,	     /* cbnz x1 */
	    0x36080402,	     /* tbz w2, #1 */
	    0xb7fff803,	     /* tbnz x3, #62, backwards */
	    0x14000100,	     /* b, with nothing behind it */
	    STP,
	    RET,
	};
	static const uint64_t away[] = {0x1000, 0x7000000, 0x10000000, -0x7000000ull};

	(void)state;
	for (size_t k = 0; k < sizeof(form) / sizeof(form[0]); k++) {
		for (size_t i = 0; i < sizeof(away) / sizeof(away[0]); i++) {
			uint64_t copy = AT + away[i] + 0x60, slot = AT + away[i] + 0x40;
			size_t words = form[k] == 0x14000100 ? 1 : WORDS;
			uint32_t code[WORDS] = {0};
			struct arch_patch p;
			enum arch_refusal got;

			got = plan_words(&form[k], 1, words, slot, copy, &p, code);
			code[0] = form[k];
			if (words == 1)
				got = arch_aarch64.patch.plan((const uint8_t *)code, 4, AT, slot,
							      copy, &p);
			if (away[i] == 0x10000000) {
				assert_int_equal(got, ARCH_REFUSE_REACH);
				continue;
			}
			assert_int_equal(got, ARCH_OK);
			assert_true(p.insns <= sizeof(p.old_off));
			assert_true(eval_same((const uint8_t *)code, AT, &p, copy));
			/* All instructions of the copy belong to the first of the window. */
			for (uint32_t m = 0; m < p.insns; m++)
				assert_int_equal(p.old_off[m], 0);
		}
	}
}

static void test_refused(void **state)
{
	uint32_t code[WORDS];
	struct arch_patch p;

	(void)state;
	assert_int_equal(PLAN(&p, 0x94000100), ARCH_REFUSE_CALL);    /* bl */
	assert_int_equal(PLAN(&p, 0xd63f0000), ARCH_REFUSE_CALL);    /* blr x0 */
	assert_int_equal(PLAN(&p, 0xd63f081f), ARCH_REFUSE_CALL);    /* blraaz x0 */
	assert_int_equal(PLAN(&p, 0xd61f0000), ARCH_REFUSE_INSN);    /* br x0 */
	assert_int_equal(PLAN(&p, 0xd4000001), ARCH_REFUSE_INSN);    /* svc */
	assert_int_equal(PLAN(&p, 0xd4200000), ARCH_REFUSE_FOREIGN); /* brk */
	assert_int_equal(PLAN(&p, 0), ARCH_REFUSE_FOREIGN);	     /* udf */
	assert_int_equal(PLAN(&p, BTI_C, 0xd4200000), ARCH_REFUSE_FOREIGN);
	/* A branch out of the function, followed by more code, near and far. */
	assert_int_equal(PLAN(&p, 0x14001000, STP), ARCH_REFUSE_FOREIGN);
	assert_int_equal(PLAN(&p, 0x58000051, 0xd61f0220, 1, 2, STP), ARCH_REFUSE_FOREIGN);
	/* A system call after the window does not matter. */
	assert_int_equal(PLAN(&p, 0xd28018a8, 0xd4000001), ARCH_OK);
	assert_int_equal(arch_aarch64.patch.plan((const uint8_t *)code, 2, AT, SLOT, COPY, &p),
			 ARCH_REFUSE_SHORT);
	assert_int_equal(arch_aarch64.patch.plan((const uint8_t *)code, 8, AT + 2, SLOT, COPY, &p),
			 ARCH_REFUSE_INSN);
}

static void test_branch_into(void **state)
{
	uint32_t code[WORDS];
	struct arch_patch p;

	(void)state;
	/* Word 2 is a b.ne to word -1, 0, 1. */
	assert_int_equal(PLAN(&p, STP, NOP, 0x54ffffa1), ARCH_OK);
	assert_int_equal(PLAN(&p, STP, NOP, 0x54ffffc1), ARCH_REFUSE_BRANCH_INTO);
	assert_int_equal(PLAN(&p, STP, NOP, 0x54ffffe1), ARCH_OK);
	/* With a signature the window has two words. */
	assert_int_equal(PLAN(&p, PACIASP, STP, 0x54ffffe1), ARCH_REFUSE_BRANCH_INTO);
	assert_int_equal(PLAN(&p, BTI_C, STP, 0x54ffffc1), ARCH_REFUSE_BRANCH_INTO);
	/* A call of the start is recursion; adr computes an address inside the window. */
	assert_int_equal(PLAN(&p, STP, NOP, 0x97fffffe), ARCH_OK);
	assert_int_equal(PLAN(&p, STP, 0x30ffffe0), ARCH_REFUSE_BRANCH_INTO); /* adr x0, AT + 1 */
}

static void test_slot(void **state)
{
	uint8_t out[32];

	(void)state;
	/* adr x17, -64; b */
	assert_int_equal(arch_aarch64.patch.encode_slot(out, SLOT, SLOT - 64, SLOT + 0x10000), 8);
	assert_int_equal(word(out), 0x10fffe11);
	assert_int_equal(word(out + 4), b(SLOT + 4, SLOT + 0x10000));
	/* ldr x17, +12; ldr x16, +16; br x16 */
	assert_int_equal(arch_aarch64.patch.encode_slot(out, SLOT, SLOT - 64, SLOT + (1ull << 40)),
			 28);
	assert_int_equal(word(out), 0x58000071);
	assert_int_equal(word(out + 4), 0x58000090);
	assert_int_equal(word(out + 8), 0xd61f0200);
	assert_int_equal(word(out + 12), (uint32_t)(SLOT - 64));
	assert_int_equal(word(out + 20), (uint32_t)(SLOT + (1ull << 40)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),	cmocka_unit_test(test_landing_pads),
	    cmocka_unit_test(test_evaluated),	cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_branch_into), cmocka_unit_test(test_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
