/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of a function's first instructions, so that a jump can replace them: b (4 bytes) if
 * the slot is within reach, else a load of pc followed by the address (8 or 10 bytes).
 *
 * An instruction that depends on the pc becomes movw, movt and the operation on the result; no
 * register is needed except the one that is written.  An IT block is relocated as a whole, each of
 * its instructions in its own block: a thread in the middle of one cannot be moved, a thread at its
 * start can.
 */
#include <stdlib.h>
#include "arch/arm/arm.h"

#define ALWAYS	   14
#define MAX_WINDOW sizeof(((struct arch_patch *)0)->new_bytes)

/* A function's bytes. */
struct body {
	const uint8_t *code;
	size_t size;
	uint64_t addr; /* address of the first byte */
	bool thumb;
	uint8_t *literal; /* a bit for each word that is a constant to be loaded, not code */
};

static bool decode(const struct body *b, size_t at, struct arm_insn *a)
{
	return arm_decode_form(b->code + at, b->size - at, b->addr + at + b->thumb, a);
}

static bool is_literal(const struct body *b, size_t at)
{
	uint64_t word = (b->addr + at) / 4 - b->addr / 4;

	return b->literal[word / 8] >> word % 8 & 1;
}

/* Pools of constants are between the code. */
static bool find_literals(struct body *b)
{
	struct arm_insn a;

	b->literal = calloc(b->size / 32 + 2, 1);
	if (!b->literal)
		return false;
	for (size_t at = 0; at < b->size; at += a.i.length) {
		if (!decode(b, at, &a))
			break;
		if (a.form == ARM_LOAD && a.i.target >= b->addr && a.i.target < b->addr + b->size) {
			uint64_t word = a.i.target / 4 - b->addr / 4;

			b->literal[word / 8] |= (uint8_t)(1u << word % 8);
		}
	}
	return true;
}

/* As on the other architectures: refuses a branch of the function, or an address it takes, that is
 * inside the window, and jumps to its start, which would go through the hook in each iteration. */
static enum arch_refusal scan(const struct body *b, uint8_t length)
{
	struct arm_insn a;

	for (size_t at = 0; at < b->size; at += a.i.length) {
		bool jump;

		if (is_literal(b, at)) {
			a.i.length = b->thumb ? 2 : 4;
			continue;
		}
		if (!decode(b, at, &a))
			break;
		if (!a.i.has_target || a.i.target < b->addr || a.i.target >= b->addr + length)
			continue;
		jump = a.i.kind == ARCH_INSN_JUMP || a.i.kind == ARCH_INSN_COND_JUMP;
		if (jump || a.i.target > b->addr)
			return ARCH_REFUSE_BRANCH_INTO;
	}
	return ARCH_OK;
}

/* it, for @n instructions under @cond. */
static void put_it(struct arm_out *o, uint8_t cond, unsigned int n)
{
	uint32_t same = cond & 1 ? 15 : 0;

	if (n)
		arm_put16(o, 0xbf00 | (uint32_t)cond << 4 | (same << (5 - n) & 15) | 8u >> (n - 1));
}

/* The load of @a, with the address in the register that it loads. */
static void put_load(struct arm_out *o, const struct arm_insn *a)
{
	uint32_t base = (uint32_t)a->reg << 16, up = 1u << 23, w = a->bits;

	if (!o->thumb && (w >> 26 & 3) == 1)
		arm_put32(o, (w & 0xfdf0f000) | up | base);
	else if (!o->thumb)
		arm_put32(o, (w & 0xfff0f0f0) | up | base);
	else if (a->i.length == 2)
		arm_put32(o, 0xf8d00000 | base | (uint32_t)a->reg << 12);
	else if (w >> 25 == 0x74) /* ldrd */
		arm_put32(o, (w & 0xfff0ff00) | up | base);
	else
		arm_put32(o, (w & 0xff70f000) | up | base);
}

static void put_copy(struct arm_out *o, const struct arm_insn *a)
{
	if (a->i.length == 2)
		arm_put16(o, a->bits);
	else
		arm_put32(o, a->bits);
}

/* Writes @a under @cond; @in_it: in an IT block of its own. */
static enum arch_refusal put_form(struct arm_out *o, const struct arm_insn *a, bool in_it)
{
	uint32_t target = (uint32_t)a->i.target;
	uint8_t cond = a->cond;

	switch (a->form) {
	case ARM_COPY:
		put_it(o, cond, in_it);
		put_copy(o, a);
		return ARCH_OK;
	case ARM_ADDRESS:
		put_it(o, cond, in_it ? 2 : 0);
		arm_put_constant(o, a->reg, target, cond);
		return ARCH_OK;
	case ARM_LOAD:
		put_it(o, cond, in_it ? 3 : 0);
		arm_put_constant(o, a->reg, target, cond);
		put_load(o, a);
		return ARCH_OK;
	case ARM_ADD:
		put_it(o, cond, in_it ? arm_adds(target) : 0);
		arm_put_add(o, a->reg, target, cond);
		return ARCH_OK;
	case ARM_ADD_INDEX:
		arm_put_constant(o, a->reg, target, cond);
		arm_put32(o, (uint32_t)cond << 28 | 0x00800000 | (uint32_t)a->reg << 16 |
				 (uint32_t)a->reg << 12 | a->index);
		return ARCH_OK;
	case ARM_LOAD_INDEX:
		if (a->index == a->reg) {
			arm_put_add(o, a->reg, target, cond);
			put_load(o, a);
		} else {
			arm_put_constant(o, a->reg, target, cond);
			arm_put32(o, (a->bits & 0xfff0ffff) | (uint32_t)a->reg << 16);
		}
		return ARCH_OK;
	default:
		return ARCH_REFUSE_INSN;
	}
}

/* Writes a branch under the opposite condition over a jump to the target of @a. */
static void put_branch_if(struct arm_out *o, const struct arm_insn *a)
{
	struct arm_out over = *o;
	uint32_t opposite = a->cond ^ 1u, jump;

	o->n += o->thumb ? 2 : 4;
	jump = (uint32_t)o->n;
	arm_put_jump(o, a->i.target);
	jump = (uint32_t)o->n - jump;
	if (!o->thumb)
		arm_put32(&over, opposite << 28 | 0x0a000000 | (jump - 4) / 4);
	else if (a->form == ARM_COMPARE)
		arm_put16(&over, ((a->bits & 0xfd07) ^ 0x0800) | (jump - 2) / 2 << 3);
	else
		arm_put16(&over, 0xd000 | opposite << 8 | (jump - 2) / 2);
}

static enum arch_refusal refusal_of(const struct arm_insn *a)
{
	switch (a->i.kind) {
	case ARCH_INSN_CALL:
		return ARCH_REFUSE_CALL;
	case ARCH_INSN_TRAP:
		return ARCH_REFUSE_FOREIGN;
	default:
		/* Also a system call: an interrupted one is restarted from its own address. */
		return ARCH_REFUSE_INSN;
	}
}

static enum arch_refusal relocate(struct arm_out *o, const struct arm_insn *a, bool in_it)
{
	/* The stack pointer must not hold an intermediate address. */
	if (a->i.kind == ARCH_INSN_PC_RELATIVE && a->reg >= ARM_SP && a->reg != ARM_LR)
		return ARCH_REFUSE_INSN;
	switch (a->form) {
	case ARM_BRANCH:
		if (in_it && a->cond != ALWAYS)
			put_branch_if(o, a);
		else
			arm_put_jump(o, a->i.target);
		return ARCH_OK;
	case ARM_BRANCH_IF:
	case ARM_COMPARE:
		put_branch_if(o, a);
		return ARCH_OK;
	case ARM_IT:
		return ARCH_REFUSE_INSN;
	case ARM_OTHER:
		if (a->i.kind != ARCH_INSN_RETURN)
			return refusal_of(a);
		put_it(o, a->cond, in_it);
		put_copy(o, a);
		return ARCH_OK;
	default:
		return put_form(o, a, in_it);
	}
}

/* Relocates the instructions of the block that @it begins. */
static enum arch_refusal relocate_block(const struct body *b, size_t *at, const struct arm_insn *it,
					struct arm_out *o)
{
	*at += it->i.length;
	for (unsigned int k = 0; k < it->block; k++) {
		enum arch_refusal refusal;
		struct arm_insn a;

		if (*at >= b->size || !decode(b, *at, &a))
			return ARCH_REFUSE_SHORT;
		a.cond = k ? (uint8_t)((it->cond & 14) | (it->bits >> (4 - k) & 1)) : it->cond;
		refusal = relocate(o, &a, true);
		if (refusal != ARCH_OK)
			return refusal;
		*at += a.i.length;
	}
	return ARCH_OK;
}

/* Does only padding up to the next function follow? */
static bool padding_from(const struct body *b, size_t at)
{
	static const uint8_t nop16[] = {0x00, 0xbf}, nop32[] = {0x00, 0xf0, 0x20, 0xe3};

	while (at < b->size) {
		if (b->code[at] == 0)
			at++;
		else if (b->thumb && b->size - at >= 2 && !memcmp(b->code + at, nop16, 2))
			at += 2;
		else if (!b->thumb && b->size - at >= 4 && !memcmp(b->code + at, nop32, 4))
			at += 4;
		else
			return false;
	}
	return true;
}

/* A jump away from the function that is followed by code is another tool's patch; if no code
 * follows, the function is a thunk. */
static bool foreign(const struct body *b, const struct arm_insn *a)
{
	bool out =
	    a->form == ARM_BRANCH && (a->i.target < b->addr || a->i.target >= b->addr + b->size);
	bool loaded = a->form == ARM_OTHER && a->i.kind == ARCH_INSN_INDIRECT && a->i.has_target;

	return loaded || (out && !padding_from(b, a->i.length));
}

static enum arch_refusal take_window(const struct body *b, size_t least, struct arm_out *o,
				     struct arch_patch *patch)
{
	enum arch_refusal refusal = ARCH_OK;
	bool ended = false;
	size_t at = 0;

	while (at < least && refusal == ARCH_OK) {
		struct arm_insn a;

		/* After an unconditional end there can be anything. */
		if (ended || at >= b->size || !decode(b, at, &a))
			return ARCH_REFUSE_SHORT;
		if (at == 0 && foreign(b, &a))
			return ARCH_REFUSE_FOREIGN;
		if (patch->insns == sizeof(patch->old_off) - 1)
			return ARCH_REFUSE_INSN;
		patch->old_off[patch->insns] = (uint8_t)at;
		patch->new_off[patch->insns++] = (uint8_t)o->n;
		if (a.form == ARM_IT) {
			refusal = relocate_block(b, &at, &a, o);
			continue;
		}
		refusal = relocate(o, &a, false);
		at += a.i.length;
		ended = a.cond == ALWAYS &&
			(a.i.kind == ARCH_INSN_RETURN || a.i.kind == ARCH_INSN_JUMP);
	}
	patch->length = (uint8_t)at;
	if (refusal == ARCH_OK && (at > MAX_WINDOW || o->n > o->size))
		return ARCH_REFUSE_INSN;
	return refusal;
}

/* Fills the window with nops after the jump: no instruction of the window starts there, so they are
 * not executed. */
static void put_entry(const struct body *b, uint64_t slot_entry, struct arch_patch *patch)
{
	struct arm_out o = {patch->new_bytes, 0, sizeof(patch->new_bytes), b->addr, b->thumb};

	arm_put_jump(&o, slot_entry);
	while (o.n < patch->length) {
		if (b->thumb)
			arm_put16(&o, 0xbf00);
		else
			arm_put32(&o, 0xe320f000);
	}
}

static enum arch_refusal plan(const struct body *b, uint64_t slot_entry, struct arm_out *o,
			      struct arch_patch *patch)
{
	bool near = arm_reaches(b->thumb, b->addr + (b->thumb ? 4 : 8), slot_entry);
	enum arch_refusal refusal;

	patch->addr = b->addr;
	refusal = take_window(b, near ? 4 : b->addr & 2 ? 10 : 8, o, patch);
	if (refusal == ARCH_OK)
		refusal = scan(b, patch->length);
	if (refusal != ARCH_OK)
		return refusal;
	patch->old_off[patch->insns] = patch->length;
	patch->new_off[patch->insns++] = (uint8_t)o->n;
	arm_put_jump(o, b->addr + patch->length);
	patch->relocated_length = (uint8_t)o->n;
	if (o->n > o->size)
		return ARCH_REFUSE_INSN;
	put_entry(b, slot_entry, patch);
	return ARCH_OK;
}

enum arch_refusal arm_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch)
{
	struct body b = {code, size, addr & ~(uint64_t)ARM_THUMB, addr & ARM_THUMB, NULL};
	struct arm_out o = {patch->relocated, 0, sizeof(patch->relocated),
			    relocated_at & ~(uint64_t)ARM_THUMB, b.thumb};
	enum arch_refusal refusal;

	memset(patch, 0, sizeof(*patch));
	if (!find_literals(&b))
		return ARCH_REFUSE_INSN;
	refusal = plan(&b, slot_entry & ~(uint64_t)ARM_THUMB, &o, patch);
	free(b.literal);
	return refusal;
}
