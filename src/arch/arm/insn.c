/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes A32 instructions (ARM ARM DDI 0406, A5), as far as they depend on their address. */
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

static uint32_t rn(uint32_t w)
{
	return w >> 16 & 15;
}

static uint32_t rd(uint32_t w)
{
	return w >> 12 & 15;
}

static uint32_t rm(uint32_t w)
{
	return w & 15;
}

/* Data processing: which source operand is the pc? (A5.2.1 to A5.2.3) */
static void processing(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t op = w >> 21 & 15, rotation = w >> 7 & 30, value = w & 255;
	bool immediate = w >> 25 & 1, by_register = !immediate && w >> 4 & 1;
	bool uses_rn = op != 13 && op != 15, tests = op >= 8 && op <= 11;
	bool rn_pc = uses_rn && rn(w) == PC, rm_pc = !immediate && rm(w) == PC;

	if (!tests && rd(w) == PC) {
		other(o, op == 13 && !immediate && rm(w) == LR && !(w >> 4 & 0xff)
			     ? ARCH_INSN_RETURN
			     : ARCH_INSN_INDIRECT);
		return;
	}
	if (by_register && (w >> 8 & 15) == PC)
		rm_pc = true;
	if (!rn_pc && !rm_pc)
		return;
	o->reg = (uint8_t)rd(w);
	value = rotation ? value >> rotation | value << (32 - rotation) : value;
	if (w >> 20 & 1 || by_register || (rn_pc && rm_pc)) {
		other(o, ARCH_INSN_INVALID);
	} else if (immediate && op == 4) {
		to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, pc + value);
	} else if (immediate && op == 2) {
		to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, pc - value);
	} else if (op == 13 && !(w >> 4 & 0xff)) { /* mov rd, pc */
		to(o, ARCH_INSN_PC_RELATIVE, ARM_ADDRESS, pc);
	} else if (op == 4 && !immediate && !(w >> 4 & 0xff)) {
		o->index = (uint8_t)(rn_pc ? rm(w) : rn(w));
		to(o, ARCH_INSN_PC_RELATIVE, o->index == o->reg ? ARM_ADD : ARM_ADD_INDEX, pc);
		o->i.has_target = false; /* the sum is not an address yet */
	} else {
		other(o, ARCH_INSN_INVALID);
	}
}

/* Halfwords, signed bytes, doublewords (A5.2.8), with swp, ldrex and multiplications. */
static void extra(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint32_t offset = (w >> 4 & 0xf0) | (w & 15);
	bool dual = !(w >> 20 & 1) && (w >> 5 & 3) == 2;

	if (!(w >> 5 & 3))
		return;
	if ((!(w >> 22 & 1) && rm(w) == PC) || rd(w) == PC) {
		other(o, ARCH_INSN_INVALID);
	} else if (rn(w) == PC) {
		/* Immediate, no writeback, a load. */
		o->reg = (uint8_t)rd(w);
		if ((w & 0x01600000) == 0x01400000 && (w >> 20 & 1 || dual))
			to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD,
			   pc + (w >> 23 & 1 ? (int64_t)offset : -(int64_t)offset));
		else
			other(o, ARCH_INSN_INVALID);
	}
}

/* 00010xx0: bx, blx, bkpt and others without the pc (A5.2.12) */
static void miscellaneous(struct arm_insn *o, uint32_t w)
{
	switch (w >> 4 & 15) {
	case 1:
		if ((w & 0x0ff000f0) == 0x01200010)
			other(o, rm(w) == LR ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
		return;
	case 2:
	case 3:
		if ((w & 0x0ff00000) == 0x01200000)
			other(o, ARCH_INSN_INDIRECT);
		return;
	case 7:
		other(o, (w & 0x0ff00000) == 0x01200000 ? ARCH_INSN_TRAP : ARCH_INSN_INVALID);
		return;
	}
}

/* ldr, ldrb, str, strb (A5.3) */
static void single(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	bool load = w >> 20 & 1, indexed = w >> 25 & 1, up = w >> 23 & 1;
	bool plain = w >> 24 & 1 && !(w >> 21 & 1);
	uint32_t offset = w & 0xfff;

	if (rd(w) == PC && load) {
		/* ldr pc, [sp], #4 is pop {pc} */
		other(o, (w & 0x0fffffff) == 0x049df004 ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
		if (!indexed && rn(w) == PC) {
			o->i.has_target = true;
			o->i.target = (uint32_t)(pc + (up ? offset : -offset));
		}
		return;
	}
	if (rd(w) == PC || (indexed && rm(w) == PC)) {
		other(o, ARCH_INSN_INVALID);
		return;
	}
	if (rn(w) != PC)
		return;
	o->reg = (uint8_t)rd(w);
	if (load && plain && !indexed) {
		to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD,
		   pc + (up ? (int64_t)offset : -(int64_t)offset));
	} else if (load && plain && up && !(w >> 4 & 0xff)) {
		o->index = (uint8_t)rm(w);
		to(o, ARCH_INSN_PC_RELATIVE, ARM_LOAD_INDEX, pc);
		o->i.has_target = false;
	} else {
		other(o, ARCH_INSN_INVALID);
	}
}

/* ldm, stm (A5.5) */
static void multiple(struct arm_insn *o, uint32_t w)
{
	if (rn(w) == PC || (!(w >> 20 & 1) && w >> 15 & 1))
		other(o, ARCH_INSN_INVALID);
	else if (w >> 20 & 1 && w >> 15 & 1)
		other(o, rn(w) == 13 ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT);
}

/* condition 1111 (A5.7) */
static void unconditional(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint64_t distance = (uint64_t)((int64_t)(int32_t)(w << 8) >> 6);

	if ((w & 0xfe000000) == 0xfa000000)
		to(o, ARCH_INSN_CALL, ARM_OTHER, pc + distance + (w >> 23 & 2));
	else if ((w & 0xff100000) == 0xf4000000 && rn(w) == PC)
		other(o, ARCH_INSN_INVALID);
	else if ((w & 0xfe000000) == 0xfc000000 && rn(w) == PC)
		other(o, ARCH_INSN_INVALID);
	else if ((w & 0xfe000000) == 0xf8000000)
		other(o, ARCH_INSN_INVALID); /* rfe, srs */
}

static void decode(struct arm_insn *o, uint32_t w, uint64_t pc)
{
	uint64_t distance = (uint64_t)((int64_t)(int32_t)(w << 8) >> 6);

	switch (w >> 25 & 7) {
	case 0:
		if ((w & 0x90) == 0x90)
			extra(o, w, pc);
		else if ((w & 0x01900000) == 0x01000000)
			miscellaneous(o, w);
		else
			processing(o, w, pc);
		return;
	case 1: /* movw, movt, msr and hints are in the same space */
		if ((w & 0x01900000) != 0x01000000)
			processing(o, w, pc);
		return;
	case 3:
		if (w >> 4 & 1) {
			if ((w & 0x0ff000f0) == 0x07f000f0)
				other(o, ARCH_INSN_TRAP);
			return;
		}
		single(o, w, pc);
		return;
	case 2:
		single(o, w, pc);
		return;
	case 4:
		multiple(o, w);
		return;
	case 5:
		if (w >> 24 & 1)
			to(o, ARCH_INSN_CALL, ARM_OTHER, pc + distance);
		else if (o->cond == ALWAYS)
			to(o, ARCH_INSN_JUMP, ARM_BRANCH, pc + distance);
		else
			to(o, ARCH_INSN_COND_JUMP, ARM_BRANCH_IF, pc + distance);
		return;
	case 6: /* Coprocessors: a load or store with the pc as base would need another register. */
		if (rn(w) == PC)
			other(o, ARCH_INSN_INVALID);
		return;
	case 7:
		if (w >> 24 & 1)
			other(o, ARCH_INSN_SYSCALL);
		return;
	}
}

bool arm_decode_form(const uint8_t *code, size_t size, uint64_t addr, struct arm_insn *out)
{
	if (addr & ARM_THUMB)
		return thumb_decode_form(code, size, addr, out);
	*out = (struct arm_insn){.i = {.length = 4}};
	if (size < sizeof(out->bits))
		return false;
	memcpy(&out->bits, code, sizeof(out->bits));
	out->cond = out->bits >> 28;
	if (out->cond == 15)
		unconditional(out, out->bits, addr + 8);
	else
		decode(out, out->bits, addr + 8);
	return true;
}

bool arm_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	struct arm_insn a;

	if (!arm_decode_form(code, size, addr, &a) || a.i.kind == ARCH_INSN_INVALID)
		return false;
	*insn = a.i;
	return true;
}
