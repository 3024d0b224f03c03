/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes Thumb-2 instructions (ARM ARM DDI 0406, A6), as far as they depend on their address. */
#include "arch/arm/arm.h"

#define ALWAYS 14
#define PC     15u
#define LR     14u

static void other(struct arm_insn *o, enum arch_insn_kind kind)
{
	o->form = ARM_OTHER;
	o->i.kind = kind;
}

static void to(struct arm_insn *o, enum arch_insn_kind kind, enum arm_form form, uint64_t target)
{
	o->form = form;
	o->i.kind = kind;
	o->i.has_target = true;
	o->i.target = (uint32_t)target;
}

static int32_t sign(uint32_t value, int bits)
{
	return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

/* add, cmp, mov with high registers, bx, blx (A6.2.3) */
static void special(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint8_t rm = w >> 3 & 15, rd = (w >> 4 & 8) | (w & 7);

	switch (w >> 8 & 3) {
	case 3:
		if (w & 0x80)
			other(o, ARCH_INSN_INDIRECT);
		else
			other(o, rm == LR ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
		return;
	case 1:
		if (rm == PC || rd == PC)
			other(o, ARCH_INSN_INVALID);
		return;
	}
	if (rd == PC) {
		other(o, rm == LR && (w >> 8 & 3) == 2 ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
	} else if (rm == PC) {
		o->reg = rd;
		to(o, ARCH_INSN_PC_RELATIVE, (w >> 8 & 3) == 0 ? ARM_ADD : ARM_ADDRESS, pc);
		/* The sum is not an address yet. */
		o->i.has_target = o->form == ARM_ADDRESS;
	}
}

/* 1011xxxx (A6.2.5) */
static void miscellaneous(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	if ((w & 0xf500) == 0xb100) {
		o->reg = w & 7;
		to(o, ARCH_INSN_COND_JUMP, ARM_COMPARE, pc + (w >> 2 & 62) + (w >> 3 & 64));
	} else if ((w & 0xff00) == 0xbd00) {
		other(o, ARCH_INSN_RETURN);
	} else if ((w & 0xff00) == 0xbe00 || (w & 0xffc0) == 0xba80) {
		other(o, ARCH_INSN_TRAP);
	} else if ((w & 0xff00) == 0xbf00 && w & 15) {
		o->form = ARM_IT;
		o->cond = w >> 4 & 15;
		o->block = (uint8_t)(4 - __builtin_ctz(w & 15));
	}
}

static void decode16(struct arm_insn *o, uint32_t w, uint64_t addr)
{
	uint64_t pc = addr + 4, aligned = pc & ~3ull;

	switch (w >> 11) {
	case 0x08:
		if (w & 0x400)
			special(o, w, pc);
		return;
	case 0x09: /* ldr literal */
		o->reg = w >> 8 & 7;
		to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD, aligned + (w & 255) * 4);
		return;
	case 0x14: /* adr */
		o->reg = w >> 8 & 7;
		to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, aligned + (w & 255) * 4);
		return;
	case 0x16:
	case 0x17:
		miscellaneous(o, w, pc);
		return;
	case 0x1a:
	case 0x1b:
		o->cond = w >> 8 & 15;
		if (o->cond == 14)
			other(o, ARCH_INSN_TRAP);
		else if (o->cond == 15)
			other(o, ARCH_INSN_SYSCALL);
		else
			to(o, ARCH_INSN_COND_JUMP, ARM_BRANCH_IF, pc + (int64_t)sign(w, 8) * 2);
		return;
	case 0x1c:
		to(o, ARCH_INSN_JUMP, ARM_BRANCH, pc + (int64_t)sign(w, 11) * 2);
		return;
	}
}

/* Branches and miscellaneous control (A6.3.4) */
static void control(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t s = w >> 26 & 1, j1 = w >> 13 & 1, j2 = w >> 11 & 1;
	uint32_t far = s << 24 | (!(j1 ^ s)) << 23 | (!(j2 ^ s)) << 22 | (w >> 16 & 0x3ff) << 12 |
		       (w & 0x7ff) << 1;
	uint32_t near = s << 20 | j2 << 19 | j1 << 18 | (w >> 16 & 0x3f) << 12 | (w & 0x7ff) << 1;

	switch (w >> 12 & 5) {
	case 5:
		to(o, ARCH_INSN_CALL, ARM_OTHER, pc + (int64_t)sign(far, 25));
		return;
	case 4: /* blx: to A32 */
		to(o, ARCH_INSN_CALL, ARM_OTHER, (pc & ~3ull) + (int64_t)sign(far & ~3u, 25));
		return;
	case 1:
		to(o, ARCH_INSN_JUMP, ARM_BRANCH, pc + (int64_t)sign(far, 25));
		return;
	}
	if ((w >> 23 & 7) != 7) {
		o->cond = w >> 22 & 15;
		to(o, ARCH_INSN_COND_JUMP, ARM_BRANCH_IF, pc + (int64_t)sign(near, 21));
	} else if ((w & 0xfff0f000) == 0xf7f0a000) {
		other(o, ARCH_INSN_TRAP);
	} else if ((w & 0xfff00000) == 0xf3d00000) {
		other(o, ARCH_INSN_RETURN); /* subs pc, lr */
	} else if ((w & 0xfff00000) == 0xf3c00000) {
		other(o, ARCH_INSN_INDIRECT); /* bxj */
	} else if ((w & 0xffe00000) == 0xf7e00000) {
		other(o, ARCH_INSN_INVALID); /* hvc, smc */
	}
}

static uint32_t immediate12(uint32_t w)
{
	return (w >> 26 & 1) << 11 | (w >> 12 & 7) << 8 | (w & 255);
}

/* Data processing with an immediate (A6.3.1, A6.3.3) */
static void immediate(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t op = w >> 20 & 31, aligned = (uint32_t)pc & ~3u;

	if ((w >> 16 & 15) != PC)
		return;
	o->reg = w >> 8 & 15;
	if (w >> 25 & 1) {
		if (op == 0)
			to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, aligned + immediate12(w));
		else if (op == 10)
			to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, aligned - immediate12(w));
		else if (op != 4 && op != 12 && op != 22) /* movw, movt, bfc */
			other(o, ARCH_INSN_INVALID);
	} else if ((op >> 1 & 15) != 2 && (op >> 1 & 15) != 3) { /* mov, mvn */
		other(o, ARCH_INSN_INVALID);
	}
}

/* Loads and stores of one register (A6.3.7 to A6.3.10) */
static void single(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t rn = w >> 16 & 15, rt = w >> 12 & 15, offset = w & 0xfff;
	bool load = w >> 20 & 1, word = (w >> 21 & 3) == 2, literal = load && rn == PC;

	if (rt == PC && load && !word)
		return; /* pld, pli: a hint */
	if (rt == PC && load) {
		/* ldr.w pc, [sp], #4 is pop {pc} */
		other(o, w == 0xf85dfb04 ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
		if (literal) {
			o->i.has_target = true;
			o->i.target = (uint32_t)((pc & ~3ull) + (w >> 23 & 1 ? offset : -offset));
		}
	} else if (literal) {
		o->reg = (uint8_t)rt;
		to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD,
		   (pc & ~3ull) + (w >> 23 & 1 ? (int64_t)offset : -(int64_t)offset));
	} else if (rn == PC || rt == PC || (!(w & 0x00800800) && (w & 15) == PC)) {
		other(o, ARCH_INSN_INVALID);
	}
}

/* 1110100: multiple, dual, exclusive, table branches (A6.3.5, A6.3.6) */
static void multiple(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t rn = w >> 16 & 15, offset = (w & 255) * 4;

	if (!(w >> 22 & 1)) {
		if (rn == PC)
			other(o, ARCH_INSN_INVALID);
		else if (w >> 20 & 1 && w >> 15 & 1)
			other(o, rn == 13 ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
	} else if ((w & 0xfff0ffe0) == 0xe8d0f000) {
		other(o, ARCH_INSN_INDIRECT); /* tbb, tbh */
	} else if (rn == PC) {
		o->reg = w >> 12 & 15;
		if ((w & 0x01300000) == 0x01100000) /* ldrd literal */
			to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD,
			   (pc & ~3ull) + (w >> 23 & 1 ? (int64_t)offset : -(int64_t)offset));
		else
			other(o, ARCH_INSN_INVALID);
	}
}

static void decode32(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	if (w >> 27 == 0x1e) {
		if (w >> 15 & 1)
			control(o, w, pc);
		else
			immediate(o, w, pc);
	} else if ((w & 0xec000000) == 0xec000000) {
		/* Coprocessors: a load or store with the pc as base would need another register. */
		if ((w & 0xee000000) == 0xec000000 && (w >> 16 & 15) == PC)
			other(o, ARCH_INSN_INVALID);
	} else if ((w & 0xfe000000) == 0xf8000000) {
		if ((w & 0xff100000) != 0xf9000000)
			single(o, w, pc);
		else if ((w >> 16 & 15) == PC)
			other(o, ARCH_INSN_INVALID);
	} else if ((w & 0xfe000000) == 0xe8000000) {
		multiple(o, w, pc);
	} else if ((w & 15) == PC) {
		other(o, ARCH_INSN_INVALID); /* a register operand (A6.3.11, A6.3.12) */
	}
}

bool thumb_decode_form(const uint8_t *code, size_t size, uint64_t addr, struct arm_insn *out)
{
	uint16_t half[2] = {0};

	*out = (struct arm_insn){.cond = ALWAYS};
	addr &= ~(uint64_t)ARM_THUMB;
	if (size < sizeof(half[0]))
		return false;
	memcpy(half, code, sizeof(half[0]));
	out->i.length = half[0] >> 11 >= 0x1d ? 4 : 2;
	if (size < out->i.length)
		return false;
	if (out->i.length == 2) {
		out->bits = half[0];
		decode16(out, half[0], addr);
		return true;
	}
	memcpy(half, code, sizeof(half));
	out->bits = (uint32_t)half[0] << 16 | half[1];
	decode32(out, out->bits, addr + 4);
	return true;
}
