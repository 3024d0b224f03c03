/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What A32 and Thumb instructions do to the frame of their function. */
#ifndef ARCH_ARM_FRAME_H
#define ARCH_ARM_FRAME_H

#include "arch/arm/arm.h"

/* arch.unwind.frame_insn; @mode 1: Thumb. */
bool arm_frame_insn(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		    uint8_t mode, struct arch_frame_insn *insn);
/* frame_t32.c: arm_frame_insn() for Thumb instructions of 16 and 32 bits; @low is the second
 * halfword. */
void arm_frame_t16(uint32_t op, uint64_t addr, struct arch_frame_insn *insn);
void arm_frame_t32(uint32_t high, uint32_t low, uint64_t addr, struct arch_frame_insn *insn);

/* Push and pop of a register list; a load of the program counter leaves the function. */
static inline void arm_frame_push(struct arch_frame_insn *i, uint32_t mask)
{
	i->saves = mask;
	i->sp = ARCH_SP_ADD;
	i->sp_n = -4 * __builtin_popcount(mask);
	i->prologue = mask >> ARM_LR & 1;
}

static inline void arm_frame_pop(struct arch_frame_insn *i, uint32_t mask)
{
	i->loads = mask & ~(1u << ARM_PC);
	i->sp = mask >> ARM_SP & 1 ? ARCH_SP_LOST : ARCH_SP_ADD;
	i->sp_n = 4 * __builtin_popcount(mask);
	if (mask >> ARM_PC & 1)
		i->flow = ARCH_FLOW_EXIT;
}

/* @rd = @rn + @n, where one of them is a stack or frame pointer. */
static inline void arm_frame_add(struct arch_frame_insn *i, unsigned rd, unsigned rn, int32_t n)
{
	if (rd == ARM_SP && rn == ARM_SP) {
		i->sp = ARCH_SP_ADD;
		i->sp_n = n;
	} else if (rd == ARM_SP) {
		i->sp = ARCH_SP_FROM;
		i->sp_reg = (uint8_t)rn;
		i->sp_n = n;
	} else if (rn == ARM_SP) {
		i->copy = (uint8_t)rd;
		i->copy_n = n;
	} else if (rd == rn) {
		i->add = (uint8_t)rd;
		i->add_n = n;
	}
}

static inline void arm_frame_branch(struct arch_frame_insn *i, enum arch_flow flow, uint64_t target,
				    uint8_t mode)
{
	i->flow = (uint8_t)flow;
	i->has_target = true;
	i->target = target;
	i->target_mode = mode;
}

#endif
