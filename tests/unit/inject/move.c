/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Moves between a window and its copy.  A MIPS64 thread is moved at every instruction of a function's
 * slot, copy and window, and must do the same as one that was never in a hook.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../arch/mips64_evaluate.h"
#include "../arch/mips64_words.h"
#include "arch/mips64/mips64.h"
#include "inject/hooks/move.h"
#include "inject/internal.h"

#define AT    0xfff3200000ull
#define NEAR  0xfff3a00000ull /* in AT's region of 256 MiB */
#define FAR   0xffe0000000ull
#define AGENT 0xffd1234560ull
#define WORDS 24

#define GP_LOW 0x679c1234u /* daddiu $gp, $gp, 0x1234 */

struct function {
	const struct arch *arch;
	uint8_t code[4 * WORDS], slot[SLOT_BYTES];
	struct ss_journal_hook hook;
};

/* A function that begins with @head, its hook planned as inject/hooks/plan.c does. */
static void make(struct function *f, const struct arch *arch, const uint32_t head[8], uint64_t slot)
{
	struct ss_journal_hook *h = &f->hook;
	struct arch_patch p;

	f->arch = arch;
	put_function(arch, f->code, WORDS, head, 8);
	assert_int_equal(arch->patch.plan(f->code, sizeof(f->code), AT, slot + SLOT_ENTRY,
					  slot + SLOT_RELOCATED, &p),
			 ARCH_OK);
	memset(h, 0, sizeof(*h));
	h->addr = p.addr;
	h->length = p.length;
	h->insns = p.insns;
	h->slot_addr = slot;
	h->relocated_addr = slot + SLOT_RELOCATED;
	h->relocated_length = p.relocated_length;
	memcpy(h->old_off, p.old_off, sizeof(h->old_off));
	memcpy(h->new_off, p.new_off, sizeof(h->new_off));
	memcpy(h->old_bytes, f->code, p.length);
	memcpy(h->new_bytes, p.new_bytes, p.length);
	arch->patch.encode_slot(f->slot + SLOT_ENTRY, slot + SLOT_ENTRY, slot, AGENT);
	memcpy(f->slot + SLOT_RELOCATED, p.relocated, p.relocated_length);
}

static void start(struct ev *e, struct function *f, uint64_t seed)
{
	ev_start(e, AT, seed, f->arch->elf_data == 2);
	e->piece[0] = (struct ev_piece){AT, sizeof(f->code), f->code};
	e->piece[1] = (struct ev_piece){f->hook.slot_addr, SLOT_BYTES, f->slot};
}

static void patch(struct function *f, bool on)
{
	memcpy(f->code, on ? f->hook.new_bytes : f->hook.old_bytes, f->hook.length);
}

/* Return: the registers of a stopped thread. */
static struct arch_regs stopped(const struct ev *e)
{
	struct arch_regs regs = {0};

	for (int i = 0; i < 32; i++)
		mips_set_reg(&regs, i, e->reg[i]);
	mips_set_reg(&regs, MIPS_R_EPC, e->pc);
	return regs;
}

static void resume(struct ev *e, const struct arch_regs *regs)
{
	for (int i = 0; i < 32; i++)
		e->reg[i] = mips_reg(regs, i);
	e->pc = mips_reg(regs, MIPS_R_EPC);
}

static void assert_same_end(const struct ev *was, struct ev *is, int step)
{
	ev_run(is, 0);
	if (was->lost || is->lost || was->pc != is->pc || was->trace != is->trace ||
	    ev_state(was) != ev_state(is))
		fail_msg("moved at step %d: ends at %llx instead of %llx, or in another state",
			 step, (long long)is->pc, (long long)was->pc);
}

/* Runs the hooked function for @steps; the agent only jumps to the copy.  Return: the steps that were
 * executed. */
static int run_hooked(struct ev *e, struct function *f, int steps)
{
	int n;

	patch(f, true);
	n = ev_steps(e, AGENT, steps);
	if (e->pc == AGENT && n < steps) {
		e->pc = f->hook.relocated_addr;
		n += ev_steps(e, f->hook.addr + f->hook.length, steps - n);
	}
	patch(f, false);
	return n;
}

static int moved_back_at(struct function *f, const struct ev *was, uint64_t seed, int steps,
			 int counts[3])
{
	const struct ss_journal_hook *h = &f->hook;
	struct arch_regs regs;
	struct span jump;
	enum moved moved;
	struct ev e;
	int n;

	start(&e, f, seed);
	n = run_hooked(&e, f, steps);
	if (e.pc == AGENT)
		return n;
	regs = stopped(&e);
	if (move_jump(f->arch, h, h->new_bytes, &jump) && move_out_of_jump(f->arch, h, &regs)) {
		assert_true(e.pc >= jump.start && e.pc < jump.end);
		resume(&e, &regs);
		assert_true(e.pc == AT);
	}
	moved = move_back(f->arch, h, &regs);
	counts[moved]++;
	if (moved == MOVED_BACK) {
		assert_true(e.pc >= h->slot_addr && e.pc < h->slot_addr + SLOT_BYTES);
		resume(&e, &regs);
		assert_true(e.pc >= AT && e.pc <= AT + h->length);
	} else if (moved == MOVED_OUTSIDE) {
		assert_true(e.pc - AT < sizeof(f->code) || e.pc == was->pc);
	} else {
		assert_true(e.pc > h->relocated_addr + h->new_off[h->insns - 1]);
	}
	assert_same_end(was, &e, steps);
	return n;
}

static bool moved_in_at(struct function *f, const struct ev *was, uint64_t seed, int steps)
{
	struct arch_regs regs;
	struct ev e;

	start(&e, f, seed);
	ev_steps(&e, AT + f->hook.length, steps);
	regs = stopped(&e);
	assert_false(move_cannot(f->arch, &f->hook, e.pc));
	if (!move_into_copy(f->arch, &f->hook, &regs))
		return false;
	resume(&e, &regs);
	assert_true(e.pc > f->hook.relocated_addr);
	patch(f, true);
	assert_same_end(was, &e, steps);
	patch(f, false);
	return true;
}

/* After the text was restored, or where it was never patched, a thread inside the window executes the
 * function's own instructions. */
static void test_jump_is_there(void **state)
{
	static const uint32_t head[8] = {ENTER, SAVE_GP, GP_HIGH, GP_ADD, GP_LOW};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct span jump = {0, 0};
		struct function f;

		make(&f, k / 2 ? &arch_mips64be : &arch_mips64, head, k % 2 ? FAR : NEAR);
		assert_false(move_jump(f.arch, &f.hook, f.hook.old_bytes, &jump));
		assert_int_equal(move_jump(f.arch, &f.hook, f.hook.new_bytes, &jump), k % 2);
		assert_int_equal(jump.end - jump.start, k % 2 ? 23 : 0);
	}
}

static void test_mips64(void **state)
{
	static const uint32_t heads[][8] = {
	    {ENTER, SAVE_GP, GP_HIGH, GP_ADD, GP_LOW},
	    {GP_HIGH, GP_ADD, ENTER, SAVE_GP, GP_LOW},
	    {GP_HIGH, ENTER, GP_ADD, SAVE_GP, GP_LOW},
	    {BEQZ_A0(9), NOP, ENTER, SAVE_GP, GP_HIGH, GP_ADD},
	    {BEQZ_A0(9), ENTER, SAVE_GP, GP_HIGH, GP_ADD},
	    {BEQZL_A0(9), ENTER, SAVE_GP, GP_HIGH, GP_ADD},
	    {ENTER, BEQZ_A0(9), SAVE_GP, GP_HIGH, GP_ADD},
	};
	int counts[3] = {0}, moved_in = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		for (int k = 0; k < 4; k++) {
			struct function f;

			make(&f, k / 2 ? &arch_mips64be : &arch_mips64, heads[i],
			     k % 2 ? FAR : NEAR);
			for (uint64_t seed = 1; seed <= 8; seed++) {
				struct ev was;
				int n = 0;

				start(&was, &f, seed);
				ev_run(&was, 0);
				while (moved_back_at(&f, &was, seed, n, counts) == n)
					n++;
				for (n = 0; n < 8; n++)
					moved_in += moved_in_at(&f, &was, seed, n);
			}
		}
	}
	assert_true(counts[MOVED_BACK] > 1000);
	assert_true(counts[MOVED_NOT] > 10); /* at a branch's own jump */
	assert_true(moved_in > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_jump_is_there),
					   cmocka_unit_test(test_mips64)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
