/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames in A32 code (Arm Architecture Reference Manual ARMv7-A, DDI0406C, A5). */
#include "arch/arm/frame.h"

#define ALWAYS 14u

static void data_processing(uint32_t op, struct arch_frame_insn *i)
{
	unsigned rn = op >> 16 & 0xf, rd = op >> 12 & 0xf, rm = op & 0xf, what = op >> 21 & 0xf;
	unsigned turn = (op >> 8 & 0xf) * 2;
	uint32_t n = op & 0xff;
	bool immediate = op >> 25 & 1;

	n = turn ? n >> turn | n << (32 - turn) : n;
	if (immediate && (what == 4 || what == 2) && rd != ARM_PC) { /* add, sub */
		arm_frame_add(i, rd, rn, (int32_t)(what == 4 ? n : -n));
	} else if (immediate && what == 13) { /* mov */
		i->constant = (uint8_t)rd;
		i->constant_n = (int32_t)n;
	} else if (!immediate && what == 13 && !(op & 0xff0) && rd != ARM_PC) {
		arm_frame_add(i, rd, rm, 0);
	} else if (rd == ARM_PC && what != 8 && what != 9 && what != 10 && what != 11) {
		i->flow =
		    what == 13 && rm == ARM_LR && !immediate ? ARCH_FLOW_EXIT : ARCH_FLOW_SWITCH;
	} else if (rd == ARM_SP && !immediate && (what == 4 || what == 2) && rn == ARM_SP) {
		i->sp = op & 0xff0 ? ARCH_SP_LOST : ARCH_SP_ADD_REG;
		i->sp_reg = (uint8_t)rm;
		i->sp_n = what == 4 ? 1 : -1;
	} else if (rd == ARM_SP) {
		i->sp = ARCH_SP_LOST;
	}
}

static void wide_move(uint32_t op, struct arch_frame_insn *i)
{
	uint32_t n = (op >> 4 & 0xf000) | (op & 0xfff);

	i->constant = op >> 12 & 0xf;
	i->more = op >> 22 & 1;
	i->constant_n = (int32_t)(i->more ? n << 16 : n);
}

static void single(uint32_t op, uint64_t addr, struct arch_frame_insn *i)
{
	unsigned rn = op >> 16 & 0xf, rt = op >> 12 & 0xf;
	bool load = op >> 20 & 1, up = op >> 23 & 1, immediate = !(op >> 25 & 1);
	uint64_t n = op & 0xfff;

	if (load && rn == ARM_PC && immediate) {
		i->data = up ? addr + 8 + n : addr + 8 - n;
		i->data_length = 4;
	}
	if ((op & 0x0fff0fff) == 0x052d0004) { /* str rt, [sp, #-4]! */
		arm_frame_push(i, 1u << rt);
	} else if ((op & 0x0fff0fff) == 0x049d0004) { /* ldr rt, [sp], #4 */
		arm_frame_pop(i, 1u << rt);
	} else if (rn == ARM_SP && (!(op >> 24 & 1) || op >> 21 & 1)) {
		i->sp = immediate ? ARCH_SP_ADD : ARCH_SP_LOST;
		i->sp_n = (int32_t)(up ? n : -n);
	} else if (load && rt == ARM_PC) {
		i->flow = immediate ? ARCH_FLOW_EXIT : ARCH_FLOW_SWITCH;
	}
}

static void multiple(uint32_t op, struct arch_frame_insn *i)
{
	unsigned rn = op >> 16 & 0xf;
	uint32_t list = op & 0xffff;

	if ((op & 0x0fff0000) == 0x092d0000)
		arm_frame_push(i, list);
	else if ((op & 0x0fff0000) == 0x08bd0000)
		arm_frame_pop(i, list);
	else if (op >> 20 & 1 && list >> ARM_PC)
		i->flow = ARCH_FLOW_EXIT;
	else if ((rn == ARM_SP && op >> 21 & 1) || (op >> 20 & 1 && list >> ARM_SP & 1))
		i->sp = ARCH_SP_LOST;
}

static void unconditional(uint32_t op, uint64_t addr, struct arch_frame_insn *i)
{
	int64_t offset = (int32_t)(op << 8) >> 6;

	if ((op & 0xfe000000) == 0xfa000000) /* blx */
		arm_frame_branch(i, ARCH_FLOW_CALL, addr + 8 + (uint64_t)(offset + (op >> 23 & 2)),
				 1);
}

static void a32(uint32_t op, uint64_t addr, struct arch_frame_insn *i)
{
	int64_t offset = (int32_t)(op << 8) >> 6;
	int32_t bytes = (int32_t)(op & 0xff) * 4;

	if ((op & 0x0ffffff0) == 0x012fff10) /* bx */
		i->flow = ARCH_FLOW_EXIT;
	else if ((op & 0x0ffffff0) == 0x012fff30) /* blx */
		i->flow = ARCH_FLOW_CALL;
	else if ((op & 0x0fb00000) == 0x03000000)
		wide_move(op, i);
	else if ((op & 0x0e000090) == 0x00000090) /* multiplications, halfwords, doublewords */
		i->sp = (op >> 16 & 0xf) == ARM_SP && op >> 21 & 1 && op & 0x60 ? ARCH_SP_LOST
										: ARCH_SP_SAME;
	else if (!(op & 0x0c000000))
		data_processing(op, i);
	else if ((op & 0x0c000000) == 0x04000000 && (op & 0x02000010) != 0x02000010)
		single(op, addr, i);
	else if ((op & 0x0e000000) == 0x08000000)
		multiple(op, i);
	else if ((op & 0x0e000000) == 0x0a000000)
		arm_frame_branch(i,
				 op >> 24 & 1	      ? ARCH_FLOW_CALL
				 : op >> 28 == ALWAYS ? ARCH_FLOW_JUMP
						      : ARCH_FLOW_BRANCH,
				 addr + 8 + (uint64_t)offset, 0);
	else if ((op & 0x0fbf0e00) == 0x0d2d0a00)
		arm_frame_add(i, ARM_SP, ARM_SP, -bytes);
	else if ((op & 0x0fbf0e00) == 0x0cbd0a00)
		arm_frame_add(i, ARM_SP, ARM_SP, bytes);
	else if ((op & 0x0f3f0e00) == 0x0d1f0a00) {
		i->data = addr + 8 + (uint64_t)(int64_t)(op & 0x800000 ? bytes : -bytes);
		i->data_length = op & 0x100 ? 8 : 4;
	}
}

bool arm_frame_insn(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		    uint8_t mode, struct arch_frame_insn *i)
{
	/* Instructions are little endian even if data is not (BE8). */
	uint32_t high, low, op;

	(void)arch;
	if (size < (mode ? 2 : 4))
		return false;
	high = (uint32_t)code[0] | (uint32_t)code[1] << 8;
	if (mode && high < 0xe800) {
		*i = arch_frame_plain(2);
		arm_frame_t16(high, addr, i);
		return true;
	}
	if (size < 4)
		return false;
	*i = arch_frame_plain(4);
	low = (uint32_t)code[2] | (uint32_t)code[3] << 8;
	op = high | low << 16;
	if (mode)
		arm_frame_t32(high, low, addr, i);
	else if (op >> 28 == 15)
		unconditional(op, addr, i);
	else
		a32(op, addr, i);
	i->conditional = !mode && op >> 28 != ALWAYS && i->flow != ARCH_FLOW_BRANCH;
	return true;
}
