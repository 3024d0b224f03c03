/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of a function's first instruction, so that a `b` can replace it:
 *
 *	function:  [bti c]			relocated copy:  first instruction, adjusted
 *		   b slot
 *		   rest of the function  <-----------------  b back
 *
 * A function that signs its return address begins with paciasp, which is also its landing pad and
 * must stay.  The hook would get a signed link register there, and the copy, which the agent calls,
 * must sign its own.  So the signature is removed on the way to the slot.
 *
 *	function:  paciasp			relocated copy:  paciasp
 *		   b undo				         second instruction, adjusted
 *		   rest of the function  <-----------------  b back
 *						undo:	 autiasp
 *							 b slot
 */
#include <string.h>
#include "arch/aarch64/aarch64.h"

#define NOP	       0xd503201fu
#define SIGN_TO_CHECK  0x80u /* paciasp to autiasp, pacibsp to autibsp: hint #25 to #29 */
#define SKIP_2	       0x14000002u
#define COND_OVER_NEXT (2u << 5) /* a distance of two instructions */
#define COND_DISTANCE  (0x7ffffu << 5)
#define TEST_DISTANCE  (0x3fffu << 5)
#define SCRATCH	       17u

struct body {
	const uint8_t *code;
	size_t size;
	uint64_t addr;
};

struct out {
	struct arch_patch *patch;
	size_t n;    /* bytes of patch->relocated */
	uint64_t at; /* their address */
	uint8_t old; /* address of relocated[0] */
};

static uint32_t insn_at(const struct body *b, size_t at)
{
	const uint8_t *p = b->code + at;

	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Records a position.  If an instruction became several, a thread at any of them can be moved back
 * to the original one: they change only the scratch register, or set a register to a constant. */
static void map(struct out *o)
{
	o->patch->old_off[o->patch->insns] = o->old;
	o->patch->new_off[o->patch->insns++] = (uint8_t)o->n;
}

static uint8_t *next(struct out *o)
{
	return o->patch->relocated + o->n;
}

static void emit(struct out *o, uint32_t insn)
{
	map(o);
	o->n += a64_put(next(o), insn);
}

/* Two instructions, followed by the constant that they load. */
static void put_constant(struct out *o, unsigned int reg, uint64_t value)
{
	size_t n = a64_encode_constant(next(o), reg, value);

	map(o);
	o->n += A64_INSN;
	map(o);
	o->n += n - A64_INSN;
}

static void put_jump(struct out *o, uint64_t target)
{
	size_t n = a64_encode_jump(next(o), o->at + o->n, target);

	map(o);
	o->n += A64_INSN;
	if (n > A64_INSN)
		map(o);
	o->n += n - A64_INSN;
}

/*
 * Refuses a direct branch of the function, or an address it takes, that is strictly inside the
 * window.  Jumps to its start are refused too: a loop over the entry would go through the hook in
 * each iteration and accumulate frames of the agent.  Calls to the start are recursion and
 * permitted.
 */
static enum arch_refusal scan(const struct body *b, uint64_t window, uint64_t end)
{
	for (size_t at = 0; at + A64_INSN <= b->size; at += A64_INSN) {
		struct arch_insn i;
		bool jump;

		a64_decode(b->code + at, A64_INSN, b->addr + at, &i);
		if (!i.has_target || i.target < b->addr || i.target >= end)
			continue;
		jump = i.kind == ARCH_INSN_JUMP || i.kind == ARCH_INSN_COND_JUMP;
		if (jump || i.target > window)
			return ARCH_REFUSE_BRANCH_INTO;
	}
	return ARCH_OK;
}

/* Does only padding up to the next function follow? */
static bool padding_from(const struct body *b, size_t at)
{
	for (; at + A64_INSN <= b->size; at += A64_INSN) {
		uint32_t insn = insn_at(b, at);

		if (insn != NOP && insn)
			return false;
	}
	return true;
}

/* A jump away from the function that is followed by code is another tool's patch, near or far (ldr
 * xN, literal; br xN); if no code follows, the function is a thunk. */
static bool foreign(const struct body *b, size_t at)
{
	uint32_t insn = insn_at(b, at), then;
	uint64_t target = a64_target(insn, b->addr + at);

	if (a64_form(insn) == A64_B)
		return (target < b->addr || target >= b->addr + b->size) &&
		       !padding_from(b, at + A64_INSN);
	if (a64_form(insn) != A64_LITERAL || at + 2 * A64_INSN > b->size)
		return false;
	then = insn_at(b, at + A64_INSN);
	return a64_form(then) == A64_BR && (then >> 5 & 31) == (insn & 31) &&
	       target == b->addr + at + 2 * A64_INSN;
}

/* Sets @load to the load from the address in the scratch register that is equivalent to the literal
 * load. */
static bool literal_load(uint32_t insn, uint32_t *load)
{
	/* By opc and V: ldr w, x, ldrsw, prfm; ldr s, d, q (C4.1.88, unsigned immediate). */
	static const uint32_t opcode[2][4] = {{0xb9400000, 0xf9400000, 0xb9800000, 0xf9800000},
					      {0xbd400000, 0xfd400000, 0x3dc00000, 0}};
	uint32_t op = opcode[insn >> 26 & 1][insn >> 30];

	*load = op | SCRATCH << 5 | (insn & 31);
	return op;
}

static enum arch_refusal relocate(struct out *o, uint32_t insn, uint64_t at)
{
	enum a64_form form = a64_form(insn);
	uint64_t target = a64_target(insn, at);
	uint32_t load;

	switch (form) {
	case A64_PLAIN:
	case A64_RET:
	case A64_BTI:
		emit(o, insn);
		return ARCH_OK;
	case A64_ADR:
	case A64_ADRP:
		put_constant(o, insn & 31, target);
		return ARCH_OK;
	case A64_LITERAL:
		if (!literal_load(insn, &load))
			return ARCH_REFUSE_INSN;
		put_constant(o, SCRATCH, target);
		emit(o, load);
		return ARCH_OK;
	case A64_B:
		put_jump(o, target);
		return ARCH_OK;
	case A64_COND:
	case A64_TEST: {
		/* The condition skips a branch that skips the jump. */
		uint32_t field = form == A64_COND ? COND_DISTANCE : TEST_DISTANCE;
		size_t skip;

		emit(o, (insn & ~field) | COND_OVER_NEXT);
		skip = o->n;
		emit(o, SKIP_2);
		put_jump(o, target);
		a64_encode_jump(o->patch->relocated + skip, o->at + skip, o->at + o->n);
		return ARCH_OK;
	}
	case A64_BL:
	case A64_OTHER_CALL:
		return ARCH_REFUSE_CALL;
	case A64_TRAP:
		return ARCH_REFUSE_FOREIGN;
	default:
		/* Also a system call: an interrupted one is restarted from its own address. */
		return ARCH_REFUSE_INSN;
	}
}

/* Patches the instruction at @window or, if there is an instruction @sign there that must stay, the
 * next one. */
static enum arch_refusal plan(const struct body *b, size_t window, uint32_t sign,
			      uint64_t slot_entry, struct out *o)
{
	size_t at = window + (sign ? A64_INSN : 0);
	uint64_t patched = b->addr + at, back = patched + A64_INSN, to = slot_entry;
	struct arch_patch *patch = o->patch;
	enum arch_refusal refusal;

	if (at + A64_INSN > b->size)
		return ARCH_REFUSE_SHORT;
	if (foreign(b, at))
		return ARCH_REFUSE_FOREIGN;
	if (sign)
		emit(o, sign);
	o->old = (uint8_t)(at - window);
	refusal = relocate(o, insn_at(b, at), patched);
	if (refusal == ARCH_OK)
		refusal = scan(b, b->addr + window, back);
	if (refusal != ARCH_OK)
		return refusal;
	o->n += a64_encode_jump(next(o), o->at + o->n, back);
	if (sign) {
		to = o->at + o->n;
		emit(o, sign + SIGN_TO_CHECK);
		o->old = 0;
		put_jump(o, slot_entry);
		a64_put(patch->new_bytes, sign);
	}
	if (!a64_reaches(patched, to))
		return ARCH_REFUSE_REACH;
	patch->addr = b->addr + window;
	patch->length = (uint8_t)(back - patch->addr);
	patch->relocated_length = (uint8_t)o->n;
	a64_encode_jump(patch->new_bytes + (at - window), patched, to);
	return ARCH_OK;
}

enum arch_refusal a64_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch)
{
	struct out o = {.patch = patch, .at = relocated_at};
	struct body b = {code, size, addr};
	uint32_t first;

	memset(patch, 0, sizeof(*patch));
	if (size < A64_INSN || addr % A64_INSN)
		return size < A64_INSN ? ARCH_REFUSE_SHORT : ARCH_REFUSE_INSN;
	first = insn_at(&b, 0);
	if (a64_form(first) == A64_BTI)
		return plan(&b, A64_INSN, 0, slot_entry, &o);
	return plan(&b, 0, a64_form(first) == A64_SIGN ? first : 0, slot_entry, &o);
}
