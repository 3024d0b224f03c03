/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files of this folder; the contract is arch/arch.h.  An address with bit 0 set is
 * that of Thumb code, as in the symbol of a function and in a branch register (ARM ARM, A2.3.2).
 */
#ifndef ARCH_ARM_ARM_H
#define ARCH_ARM_ARM_H

#include <string.h>
#include "arch/arch.h"

#define ARM_THUMB 1u
#define ARM_REGS  18
#define ARM_CPSR  16
#define ARM_ORIG  17 /* r0 at the start of a system call; -1: not in a call */
#define ARM_PC	  15
#define ARM_LR	  14
#define ARM_SP	  13

#define CPSR_T	0x20u
#define CPSR_J	0x01000000u
#define CPSR_IT 0x0600fc00u /* the rest of an IT block */

static inline uint32_t arm_reg(const struct arch_regs *regs, int n)
{
	uint32_t value;

	memcpy(&value, regs->raw + 4 * n, sizeof(value));
	return value;
}

static inline void arm_set_reg(struct arch_regs *regs, int n, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(regs->raw + 4 * n, &v, sizeof(v));
}

/* How an instruction uses the pc, and so how reloc.c rewrites it. */
enum arm_form {
	ARM_COPY,	/* does not depend on its address */
	ARM_IT,		/* begins an IT block of so many instructions (block) */
	ARM_BRANCH,	/* b */
	ARM_BRANCH_IF,	/* b with its own condition */
	ARM_COMPARE,	/* cbz, cbnz */
	ARM_ADDRESS,	/* reg := target */
	ARM_LOAD,	/* reg := memory at target */
	ARM_LOAD_INDEX, /* reg := memory at target + index */
	ARM_ADD,	/* reg += target */
	ARM_ADD_INDEX,	/* reg := target + index */
	ARM_OTHER,	/* all others: see kind in struct arch_insn */
};

struct arm_insn {
	struct arch_insn i;
	uint32_t bits; /* two halfwords of Thumb: the first one is the upper half */
	enum arm_form form;
	uint8_t cond; /* 14: always */
	uint8_t reg, index;
	uint8_t block;
};

/* insn.c, thumb.c: @addr has bit 0 set for Thumb.  As arch.patch.decode. */
bool arm_decode_form(const uint8_t *code, size_t size, uint64_t addr, struct arm_insn *out);
bool thumb_decode_form(const uint8_t *code, size_t size, uint64_t addr, struct arm_insn *out);
bool arm_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

/* Code that is being written; bytes beyond @size are only counted. */
struct arm_out {
	uint8_t *bytes;
	size_t n, size;
	uint64_t at; /* address of bytes[0] */
	bool thumb;
};

/* encode.c */
void arm_put16(struct arm_out *o, uint32_t insn);
void arm_put32(struct arm_out *o, uint32_t insn); /* Thumb: upper half first */
/* A jump to @target in the same instruction set: a branch if it reaches, else a load of pc. */
void arm_put_jump(struct arm_out *o, uint64_t target);
/* reg := value, two instructions, under @cond (A32; in Thumb the caller writes the IT). */
void arm_put_constant(struct arm_out *o, uint8_t reg, uint32_t value, uint8_t cond);
/* reg += value, without changing the flags: an instruction for each byte that is not zero. */
void arm_put_add(struct arm_out *o, uint8_t reg, uint32_t value, uint8_t cond);
/* Return: how many instructions arm_put_add() needs. */
unsigned int arm_adds(uint32_t value);
/* Does a branch at @at reach @target? */
bool arm_reaches(bool thumb, uint64_t at, uint64_t target);
size_t arm_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);

/* reloc.c */
enum arch_refusal arm_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch);

/* sigframe.c */
size_t arm_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e);

#endif
