/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files of this folder; the contract is arch/arch.h.  MIPS64, n64, both byte orders:
 * @big is the byte order of code; registers and frames are always in that of this machine.
 */
#ifndef ARCH_MIPS64_MIPS64_H
#define ARCH_MIPS64_MIPS64_H

#include "arch/arch.h"

#define MIPS_INSN	  4
#define MIPS_JUMP_LENGTH  8		 /* j and its delay slot */
#define MIPS_FAR_LENGTH	  24		 /* four to load an address, jr, delay slot */
#define MIPS_REGION	  (256ull << 20) /* j stays in the region of its delay slot */
#define MIPS_NOP	  0u
#define MIPS_SYSCALL	  0x0000000cu
#define MIPS_NR_SIGRETURN 5211

/* Offsets in NT_PRSTATUS in words (asm/reg.h, MIPS64_EF_*); a register's offset is its number. */
enum mips_regset {
	MIPS_R_RESTART = 0, /* $0 in the kernel's pt_regs: the number of a call to restart */
	MIPS_R_AT = 1,
	MIPS_R_V0 = 2,
	MIPS_R_A0 = 4,
	MIPS_R_A3 = 7,
	MIPS_R_T9 = 25,
	MIPS_R_K0 = 26, /* in pt_regs: $a3 at the entry of the call */
	MIPS_R_GP = 28,
	MIPS_R_SP = 29,
	MIPS_R_FP = 30,
	MIPS_R_RA = 31,
	MIPS_R_LO = 32,
	MIPS_R_HI = 33,
	MIPS_R_EPC = 34,
	MIPS_REGSET_WORDS = 45,
};

/* insn.c */
uint32_t mips_word(const uint8_t *code, bool big);
void mips_put_word(uint8_t *out, uint32_t word, bool big);
bool mips_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn, bool big);
/* Is @word a branch with a delay slot? */
bool mips_has_slot(uint32_t word);
/* Finds the possible targets of the branch @word at @addr: more than one if processors interpret it
 * differently.  Return: how many. */
int mips_targets(uint32_t word, uint64_t addr, uint64_t target[2]);

/* encode.c */
bool mips_same_region(uint64_t delay_slot, uint64_t target);
/* Writes four instructions that load @value (48 bits) into register @reg. */
void mips_load_address(uint8_t *out, uint32_t reg, uint64_t value, bool big);
/* A jump from @at to @target, including its delay slot; changes no register but $at.  Return: bytes
 * written to @out (room for MIPS_FAR_LENGTH). */
size_t mips_encode_jump(uint8_t *out, uint64_t at, uint64_t target, bool big);
size_t mips_encode_slot(uint8_t *out, uint64_t desc, uint64_t agent_entry, bool big);

/* reloc.c */
enum arch_refusal mips_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				  uint64_t slot_entry, uint64_t relocated_at,
				  struct arch_patch *patch, bool big);

/* sigframe.c: arch.emergency.build_frame, arch.restart.restarted_number */
size_t mips_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e);
long mips_restarted_number(const uint8_t *code, size_t n);

static inline uint64_t mips_reg(const struct arch_regs *regs, int n)
{
	uint64_t value;

	__builtin_memcpy(&value, regs->raw + 8 * n, sizeof(value));
	return value;
}

static inline void mips_set_reg(struct arch_regs *regs, int n, uint64_t value)
{
	__builtin_memcpy(regs->raw + 8 * n, &value, sizeof(value));
}

#endif
