/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* patch.plan(), patch.encode_slot() in both byte orders: compares with expected words, and
 * evaluates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arch/arch.h"
#include "mips64_evaluate.h"
#include "mips64_words.h"

#define AT    0xfff3200000ull
#define SLOT  0xfff3a00040ull /* in AT's region of 256 MiB */
#define FAR   0xffe0000040ull
#define DESC  0xfff3a00000ull
#define AGENT 0xffd1234560ull
#define WORDS 16

#define ENDS 8 /* heads from this one on have fewer than six instructions */

#define BGEZ_A0(n) (0x04810000u | (uint16_t)(n))
#define B(n)	   (0x10000000u | (uint16_t)(n))
#define BC1T(n)	   (0x45010000u | (uint16_t)(n))
#define J(to)	   (0x08000000u | (uint32_t)((to) >> 2 & 0x3ffffff))
#define JAL(to)	   (0x0c000000u | (uint32_t)((to) >> 2 & 0x3ffffff))

static const struct arch *const both[] = {&arch_mips64, &arch_mips64be};

static uint32_t get(const struct arch *arch, const uint8_t *at)
{
	return arch->elf_data == 2
		   ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
		   : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Plans for a function of WORDS words: @n given words, then nops and a return. */
static enum arch_refusal plan(const struct arch *arch, const uint32_t *words, size_t n,
			      uint64_t slot, uint8_t *code, struct arch_patch *p)
{
	put_function(arch, code, WORDS, words, n);
	return arch->patch.plan(code, 4 * WORDS, AT, slot, slot + 48, p);
}

#define PLAN(arch, slot, ...)                                                                      \
	plan(arch, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4,   \
	     slot, code, &p)

static void test_golden(void **state)
{
	uint8_t code[4 * WORDS], slot[48];
	struct arch_patch p;

	(void)state;
	for (int k = 0; k < 2; k++) {
		const struct arch *a = both[k];
		/* $t9 becomes the function's address, then its own words, then the jump back. */
		const uint32_t want[] = {0x3c1900ff, 0x3739f320, 0x0019cc38, 0x37390000,
					 ENTER,	     SAVE_GP,	 J(AT + 8),  NOP};

		assert_int_equal(PLAN(a, SLOT, ENTER, SAVE_GP, GP_HIGH, GP_ADD), ARCH_OK);
		assert_int_equal(p.addr, AT);
		assert_int_equal(p.length, 8);
		assert_int_equal(p.insns, 3); /* and the jump back */
		assert_int_equal(get(a, p.new_bytes), J(SLOT));
		assert_int_equal(get(a, p.new_bytes + 4), NOP);
		assert_int_equal(p.relocated_length, sizeof(want));
		for (size_t i = 0; i < sizeof(want) / 4; i++)
			assert_int_equal(get(a, p.relocated + 4 * i), want[i]);
		assert_int_equal(p.new_off[1], 20);
		assert_int_equal(p.old_off[1], 4);
		assert_int_equal(p.new_off[2], 24);
		assert_int_equal(p.old_off[2], 8);
		assert_int_equal(a->patch.encode_slot(slot, SLOT, DESC, AGENT), 36);
		assert_int_equal(get(a, slot + 28), 0x03200008); /* jr $t9 */
		assert_int_equal(get(a, slot + 32), 0x34210000 | (DESC & 0xffff));
	}
}

static void test_same(void **state)
{
	static const uint32_t heads[][8] = {
	    {ENTER, SAVE_GP, GP_HIGH, GP_ADD},
	    {GP_HIGH, GP_ADD, ENTER, SAVE_GP},
	    {BEQZ_A0(9), NOP, ENTER, SAVE_GP},	   /* free() of glibc */
	    {BEQZ_A0(9), ENTER, SAVE_GP, GP_HIGH}, /* the slot does something */
	    {BEQZL_A0(9), ENTER, SAVE_GP, GP_HIGH},
	    {BGEZ_A0(-40), GP_HIGH, SAVE_GP, ENTER}, /* out of the function */
	    {BC1T(9), GP_HIGH, SAVE_GP, ENTER},
	    {ENTER, BEQZ_A0(9), SAVE_GP, GP_HIGH}, /* 12 bytes */
	    {B(9), ENTER, SAVE_GP, GP_HIGH},
	    {J(AT + 40), ENTER, SAVE_GP, GP_HIGH},
	    {RETURN, 0x24020001}, /* li $v0, 1 */
	    {ENTER, RETURN, SAVE_GP},
	};
	uint8_t code[4 * WORDS];
	struct arch_patch p;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		for (int k = 0; k < 4; k++) {
			const struct arch *a = both[k / 2];
			uint64_t slot = k % 2 ? FAR : SLOT;
			enum arch_refusal r = plan(a, heads[i], 8, slot, code, &p);

			/* Code after the end of a function does not belong to it. */
			if (k % 2 && i >= ENDS) {
				assert_int_equal(r, ARCH_REFUSE_SHORT);
				continue;
			}
			assert_int_equal(r, ARCH_OK);
			assert_int_equal(p.length, k % 2 ? 24 : i == 7 || i == 11 ? 12 : 8);
			if (!ev_same(a, code, AT, &p, slot, slot + 48, DESC, AGENT))
				fail_msg("%s: head %zu does something else", a->name, i);
		}
	}
}

static void test_refused(void **state)
{
	static const struct {
		enum arch_refusal why;
		uint32_t words[8];
	} rows[] = {
	    {ARCH_REFUSE_CALL, {0x04110001, NOP}},	  /* bal */
	    {ARCH_REFUSE_CALL, {ENTER, 0x0320f809, NOP}}, /* jalr $t9 */
	    {ARCH_REFUSE_CALL, {JAL(AT + 0x1000), NOP}},
	    {ARCH_REFUSE_CALL, {0xe8000010}},			   /* balc (release 6) */
	    {ARCH_REFUSE_INSN, {0xc8000010}},			   /* bc */
	    {ARCH_REFUSE_INSN, {0xd8800004}},			   /* beqzc $a0 */
	    {ARCH_REFUSE_INSN, {0xec800001}},			   /* addiupc $a0 */
	    {ARCH_REFUSE_INSN, {ENTER, 0x0000000c}},		   /* syscall: may be restarted */
	    {ARCH_REFUSE_INSN, {0x24021388, 0x0000000c}},	   /* read(2) */
	    {ARCH_REFUSE_INSN, {ENTER, BEQZ_A0(4), BEQZ_A0(4)}},   /* a branch in a slot */
	    {ARCH_REFUSE_FOREIGN, {0x0000000d}},		   /* break */
	    {ARCH_REFUSE_FOREIGN, {0x7000003f}},		   /* sdbbp */
	    {ARCH_REFUSE_FOREIGN, {J(AT + 0x100000), NOP, ENTER}}, /* another tool's hook */
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, BEQZ_A0(-2)}},
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, BEQZ_A0(-3)}}, /* a loop over all of it */
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, J(AT + 4)}},
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, BEQZL_A0(-2)}},
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, 0xcbfffffe}}, /* bc -2 */
	    {ARCH_REFUSE_BRANCH_INTO, {ENTER, SAVE_GP, 0xc880fffe}}, /* bbit0 (Octeon) */
	};
	uint8_t code[4 * WORDS];
	struct arch_patch p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int k = 0; k < 2; k++) {
			enum arch_refusal r = plan(both[k], rows[i].words, 8, SLOT, code, &p);

			if (r != rows[i].why)
				fail_msg("row %zu: %s", i, arch_refusal_text(r));
		}
	}
}

static void test_edges(void **state)
{
	uint8_t code[4 * WORDS];
	struct arch_patch p;

	(void)state;
	for (int k = 0; k < 2; k++) {
		const struct arch *a = both[k];

		/* munmap() of glibc: its call is never restarted. */
		assert_int_equal(PLAN(a, SLOT, 0x24021393, 0x0000000c, NOP), ARCH_OK);
		/* Recursion. */
		assert_int_equal(PLAN(a, SLOT, ENTER, SAVE_GP, JAL(AT)), ARCH_OK);
		/* A thunk: a jump out of the function at its end. */
		put(a, code, J(AT + 0x100000));
		put(a, code + 4, ENTER);
		assert_int_equal(a->patch.plan(code, 8, AT, SLOT, SLOT + 48, &p), ARCH_OK);
		assert_true(ev_same(a, code, AT, &p, SLOT, SLOT + 48, DESC, AGENT));
		assert_int_equal(a->patch.plan(code, 4, AT, SLOT, SLOT + 48, &p),
				 ARCH_REFUSE_SHORT);
		assert_int_equal(a->patch.plan(code, 8, AT + 1, SLOT, SLOT + 48, &p),
				 ARCH_REFUSE_INSN); /* MIPS16, microMIPS */
		/* $at is in use where a long jump back would need it. */
		assert_int_equal(PLAN(a, FAR, ENTER, 0x3c010001, NOP, NOP, NOP, NOP),
				 ARCH_REFUSE_REACH);
		assert_int_equal(PLAN(a, SLOT, ENTER, 0x3c010001, NOP), ARCH_OK);
		/* The last word of a region: its delay slot is in the next one. */
		put(a, code, ENTER);
		put(a, code + 4, SAVE_GP);
		assert_int_equal(
		    a->patch.plan(code, 8, 0xffeffffffcull, 0xffeffff040ull, 0xffeffff070ull, &p),
		    ARCH_REFUSE_SHORT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_golden),
	    cmocka_unit_test(test_same),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
