/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames in Thumb code (Arm Architecture Reference Manual ARMv7-A, DDI0406C, A6).  An instruction
 * in an IT block does not change the frame except by leaving the function. */
#include "arch/arm/frame.h"

/* ---------------------------------------------------------------- 16 bits -- */

static void high_registers(uint32_t op, struct arch_frame_insn *i)
{
	unsigned rd = (op & 7) | (op >> 4 & 8), rm = op >> 3 & 15;

	switch (op >> 8 & 3) {
	case 0: /* add */
		if (rd == ARM_SP) {
			i->sp = ARCH_SP_ADD_REG;
			i->sp_reg = (uint8_t)rm;
			i->sp_n = 1;
		} else if (rd == ARM_PC) {
			i->flow = ARCH_FLOW_SWITCH;
		}
		return;
	case 2: /* mov */
		if (rd == ARM_PC)
			i->flow = rm == ARM_LR ? ARCH_FLOW_EXIT : ARCH_FLOW_SWITCH;
		else
			arm_frame_add(i, rd, rm, 0);
		return;
	case 3: /* bx, blx */
		i->flow = op & 0x80 ? ARCH_FLOW_CALL : ARCH_FLOW_EXIT;
		return;
	}
}

static void miscellaneous(uint32_t op, uint64_t addr, struct arch_frame_insn *i)
{
	uint32_t list = op & 0xff;

	switch (op >> 8 & 0xf) {
	case 0x0: /* add, sub sp */
		arm_frame_add(i, ARM_SP, ARM_SP, (int32_t)(op & 0x7f) * 4 * (op & 0x80 ? -1 : 1));
		return;
	case 0x1: /* cbz, cbnz */
	case 0x3:
	case 0x9:
	case 0xb:
		arm_frame_branch(i, ARCH_FLOW_BRANCH,
				 addr + 4 + ((op >> 3 & 0x1f) << 1 | (op >> 9 & 1) << 6), 1);
		return;
	case 0x4:
	case 0x5:
		arm_frame_push(i, list | (op & 0x100) << (ARM_LR - 8));
		return;
	case 0xc:
	case 0xd:
		arm_frame_pop(i, list | (op & 0x100) << (ARM_PC - 8));
		return;
	case 0xf: /* it */
		if (op & 0xf)
			i->next_conditional = (uint8_t)(4 - __builtin_ctz(op & 0xf));
		return;
	}
}

void arm_frame_t16(uint32_t op, uint64_t addr, struct arch_frame_insn *i)
{
	unsigned reg = op >> 8 & 7;

	switch (op >> 11) {
	case 0x04: /* movs rd, #n */
		i->constant = (uint8_t)reg;
		i->constant_n = op & 0xff;
		return;
	case 0x06: /* adds, subs rd, #n */
	case 0x07:
		i->add = (uint8_t)reg;
		i->add_n = (int32_t)(op & 0xff) * (op & 0x800 ? -1 : 1);
		return;
	case 0x08:
		if (op >> 10 == 0x11)
			high_registers(op, i);
		return;
	case 0x09: /* ldr rd, [pc] */
		i->data = ((addr + 4) & ~3ull) + (op & 0xff) * 4;
		i->data_length = 4;
		i->writes = 1u << reg;
		return;
	case 0x15: /* add rd, sp, #n */
		arm_frame_add(i, reg, ARM_SP, (int32_t)(op & 0xff) * 4);
		return;
	case 0x16:
	case 0x17:
		miscellaneous(op, addr, i);
		return;
	case 0x1a: /* b<c>, udf, svc */
	case 0x1b:
		if ((op >> 8 & 0xf) < 14)
			arm_frame_branch(i, ARCH_FLOW_BRANCH,
					 addr + 4 + (uint64_t)((int64_t)(int8_t)op * 2), 1);
		else if ((op >> 8 & 0xf) == 14)
			i->flow = ARCH_FLOW_EXIT;
		return;
	case 0x1c: /* b */
		arm_frame_branch(i, ARCH_FLOW_JUMP,
				 addr + 4 + (uint64_t)((int64_t)(int32_t)(op << 21) >> 20), 1);
		return;
	}
}

/* ---------------------------------------------------------------- 32 bits -- */

/* ThumbExpandImm (A6.3.2). */
static uint32_t expand(uint32_t high, uint32_t low)
{
	uint32_t n = (high >> 10 & 1) << 11 | (low >> 12 & 7) << 8 | (low & 0xff);
	uint32_t byte = n & 0xff, rotation = n >> 7;

	if (n >> 10)
		return (byte | 0x80) >> rotation | (byte | 0x80) << (32 - rotation);
	switch (n >> 8) {
	case 0:
		return byte;
	case 1:
		return byte | byte << 16;
	case 2:
		return byte << 8 | byte << 24;
	default:
		return byte * 0x01010101u;
	}
}

static uint32_t plain12(uint32_t high, uint32_t low)
{
	return (high >> 10 & 1) << 11 | (low >> 12 & 7) << 8 | (low & 0xff);
}

static void branches(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *i)
{
	uint32_t s = high >> 10 & 1, j1 = low >> 13 & 1, j2 = low >> 11 & 1;
	uint32_t i1 = !(j1 ^ s), i2 = !(j2 ^ s);
	uint32_t far = s << 24 | i1 << 23 | i2 << 22 | (high & 0x3ff) << 12 | (low & 0x7ff) << 1;
	int64_t offset = (int32_t)(far << 7) >> 7;

	switch (low >> 12 & 5) {
	case 0: /* b<c>; udf; others that change no frame */
		if ((high >> 6 & 0xf) >= 14) {
			if ((high & 0xfff0) == 0xf7f0 && (low & 0xf000) == 0xa000)
				i->flow = ARCH_FLOW_EXIT;
			return;
		}
		far = s << 20 | j2 << 19 | j1 << 18 | (high & 0x3f) << 12 | (low & 0x7ff) << 1;
		offset = (int32_t)(far << 11) >> 11;
		arm_frame_branch(i, ARCH_FLOW_BRANCH, addr + 4 + (uint64_t)offset, 1);
		return;
	case 1: /* b */
		arm_frame_branch(i, ARCH_FLOW_JUMP, addr + 4 + (uint64_t)offset, 1);
		return;
	case 4: /* blx */
		arm_frame_branch(i, ARCH_FLOW_CALL,
				 ((addr + 4) & ~3ull) + (uint64_t)(offset & ~3ll), 0);
		return;
	case 5: /* bl */
		arm_frame_branch(i, ARCH_FLOW_CALL, addr + 4 + (uint64_t)offset, 1);
		return;
	}
}

static void data_processing(uint32_t high, uint32_t low, struct arch_frame_insn *i)
{
	unsigned rn = high & 0xf, rd = low >> 8 & 0xf;
	unsigned plain = high >> 9 & 1;
	uint32_t n = plain ? plain12(high, low) : expand(high, low);

	switch (plain << 4 | (high >> 5 & 0xf)) {
	case 0x08: /* add, addw */
	case 0x10:
		if (rd != ARM_PC)
			arm_frame_add(i, rd, rn, (int32_t)n);
		return;
	case 0x0d: /* sub, subw */
	case 0x15:
		if (rd != ARM_PC)
			arm_frame_add(i, rd, rn, (int32_t)-n);
		return;
	case 0x02: /* mov */
		if (rn != ARM_PC)
			return;
		i->constant = (uint8_t)rd;
		i->constant_n = (int32_t)n;
		return;
	case 0x12: /* movw, movt */
	case 0x16:
		n |= rn << 12;
		i->constant = (uint8_t)rd;
		i->more = high >> 7 & 1;
		i->constant_n = (int32_t)(i->more ? n << 16 : n);
		return;
	}
}

static void single(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *i)
{
	unsigned rn = high & 0xf, rt = low >> 12;
	bool load = high >> 4 & 1, up = high >> 7 & 1;

	if (load && rn == ARM_PC) {
		uint64_t base = (addr + 4) & ~3ull;

		i->data = up ? base + (low & 0xfff) : base - (low & 0xfff);
		i->data_length = 4;
	}
	if (rn == ARM_SP && !up && load && (low & 0xfff) == 0xb04) { /* ldr rt, [sp], #4 */
		arm_frame_pop(i, 1u << rt);
	} else if (rn == ARM_SP && !up && !load &&
		   (low & 0xfff) == 0xd04) { /* str rt, [sp, #-4]! */
		arm_frame_push(i, 1u << rt);
	} else if (rn == ARM_SP && !up && (low & 0x900) == 0x900) { /* other write-backs */
		arm_frame_add(i, ARM_SP, ARM_SP, (int32_t)(low & 0xff) * (low & 0x200 ? 1 : -1));
	} else if (load && rt == ARM_PC && rn != ARM_PC) {
		i->flow = ARCH_FLOW_SWITCH;
	} else if (load && rt == ARM_PC) {
		i->flow = ARCH_FLOW_EXIT;
	}
}

/* strd, ldrd: two words */
static void dual(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *i)
{
	bool load = high >> 4 & 1, up = high >> 7 & 1, before = high >> 8 & 1, back = high >> 5 & 1;
	int32_t n = (int32_t)(low & 0xff) * (up ? 4 : -4);
	uint32_t first = low >> 12, second = low >> 8 & 0xf;

	if ((high & 0xf) == ARM_PC && load) {
		i->data = ((addr + 4) & ~3ull) + (uint64_t)(int64_t)n;
		i->data_length = 8;
	}
	if ((high & 0xf) != ARM_SP)
		return;
	if (back) {
		i->sp = ARCH_SP_ADD;
		i->sp_n = n;
	}
	if (load && first < second) {
		i->loads = 1u << first | 1u << second;
		i->load_at = before ? n : 0;
	} else if (!load && first < second && before && back) {
		i->saves = 1u << first | 1u << second;
	}
}

static void multiple(uint32_t high, uint32_t low, struct arch_frame_insn *i)
{
	bool back = high >> 5 & 1, load = high >> 4 & 1;
	unsigned rn = high & 0xf;

	if (rn == ARM_SP && back && load && (high >> 7 & 3) == 1)
		arm_frame_pop(i, low);
	else if (rn == ARM_SP && back && !load && (high >> 7 & 3) == 2)
		arm_frame_push(i, low);
	else if (rn == ARM_SP && back)
		i->sp = ARCH_SP_LOST;
	else if (load && low >> ARM_PC)
		i->flow = ARCH_FLOW_EXIT;
}

/* vpush, vpop and literals of the floating point registers */
static void coprocessor(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *i)
{
	int32_t bytes = (int32_t)(low & 0xff) * 4;

	if ((high & 0xffbf) == 0xed2d)
		arm_frame_add(i, ARM_SP, ARM_SP, -bytes);
	else if ((high & 0xffbf) == 0xecbd)
		arm_frame_add(i, ARM_SP, ARM_SP, bytes);
	else if ((high & 0xff3f) == 0xed1f) {
		i->data = ((addr + 4) & ~3ull) + (uint64_t)(int64_t)(high & 0x80 ? bytes : -bytes);
		i->data_length = (low & 0xf00) == 0xb00 ? 8 : 4;
	}
}

static void shifted_register(uint32_t high, uint32_t low, struct arch_frame_insn *i)
{
	unsigned rn = high & 0xf, rd = low >> 8 & 0xf;
	uint32_t op = high >> 5 & 0xf;

	if (rd != ARM_SP)
		return;
	i->sp = rn == ARM_SP && (op == 0x8 || op == 0xd) && !(low & 0x70f0) ? ARCH_SP_ADD_REG
									    : ARCH_SP_LOST;
	i->sp_reg = low & 0xf;
	i->sp_n = op == 0x8 ? 1 : -1;
}

void arm_frame_t32(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *i)
{
	if ((high & 0xfff0) == 0xe8d0 && (low & 0xffe0) == 0xf000) { /* tbb, tbh */
		i->flow = ARCH_FLOW_SWITCH;
		if ((high & 0xf) == ARM_PC)
			i->table_entry = low & 0x10 ? 2 : 1;
	} else if ((high & 0xfe40) == 0xe840) {
		/* Exclusive accesses have the same encoding space, but neither bit is set. */
		if (high & 0x120)
			dual(high, low, addr, i);
	} else if ((high & 0xfe40) == 0xe800) {
		multiple(high, low, i);
	} else if ((high & 0xfe00) == 0xea00) {
		shifted_register(high, low, i);
	} else if ((high & 0xfe00) == 0xec00) {
		coprocessor(high, low, addr, i);
	} else if ((high & 0xf800) == 0xf000 && low & 0x8000) {
		branches(high, low, addr, i);
	} else if ((high & 0xf800) == 0xf000) {
		data_processing(high, low, i);
	} else if ((high & 0xff60) == 0xf840) {
		single(high, low, addr, i);
	}
}
