/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the files of this folder; the contract is arch/arch.h.  Section numbers: Arm
 * Architecture Reference Manual for A-profile, DDI 0487. */
#ifndef ARCH_AARCH64_AARCH64_H
#define ARCH_AARCH64_AARCH64_H

#include "arch/arch.h"

#define A64_INSN 4u

/* A 64-bit register set of NT_PRSTATUS: struct user_pt_regs (uapi asm/ptrace.h). */
enum {
	A64_X8 = 8 * 8,
	A64_LR = 30 * 8,
	A64_SP = 31 * 8,
	A64_PC = 32 * 8,
	A64_PSTATE = 33 * 8,
	A64_PRSTATUS = 34 * 8,
};

/* insn.c */
/* Forms that relocation must distinguish (C4.1). */
enum a64_form {
	A64_PLAIN,
	A64_ADR,
	A64_ADRP,
	A64_LITERAL, /* load or prefetch of a literal */
	A64_COND,    /* b.cond, cbz, cbnz: 19 bits of distance */
	A64_TEST,    /* tbz, tbnz: 14 */
	A64_B,
	A64_BL,
	A64_OTHER_CALL, /* blr and its variants */
	A64_BR,
	A64_RET,
	A64_SVC,
	A64_TRAP,
	A64_BTI,
	A64_SIGN, /* paciasp, pacibsp: landing pads that change the link register */
};
enum a64_form a64_form(uint32_t insn);
/* The address that the instruction @insn at @at refers to. */
uint64_t a64_target(uint32_t insn, uint64_t at);
bool a64_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

/* reloc.c */
enum arch_refusal a64_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch);

/* encode.c */
#define A64_FAR_JUMP 16
/* Does a `b` at @at reach @target? */
bool a64_reaches(uint64_t at, uint64_t target);
size_t a64_put(uint8_t *out, uint32_t insn);
/* A jump from @at to @target: `b` if it reaches, else through x17.  Return: bytes written to @out
 * (room for A64_FAR_JUMP). */
size_t a64_encode_jump(uint8_t *out, uint64_t at, uint64_t target);
/* Loads the constant @value into x0 .. x30 @reg.  Return: bytes written (16). */
size_t a64_encode_constant(uint8_t *out, unsigned int reg, uint64_t value);
size_t a64_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);

/* sigframe.c: arch.emergency.build_frame */
size_t a64_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e);

#endif
