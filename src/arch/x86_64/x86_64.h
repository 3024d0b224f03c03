/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the files of this folder; the contract is arch/arch.h. */
#ifndef ARCH_X86_64_X86_64_H
#define ARCH_X86_64_X86_64_H

#include "arch/arch.h"

#define X86_JUMP_LENGTH	    5  /* e9 rel32 (Intel SDM, JMP) */
#define X86_FAR_JUMP_LENGTH 14 /* ff 25 00000000, then the address */
#define X86_SYSCALL_LENGTH  2  /* 0f 05 */

/* NT_PRSTATUS: struct user_regs_struct of asm/user_64.h, which other hosts lack. */
struct x86_user_regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax,
	    rip, cs, eflags, rsp, ss, fs_base, gs_base, ds, es, fs, gs;
};

/* insn.c: a decoder for many instructions; opening it takes longer than decoding one
 * instruction. */
struct x86_decoder {
	size_t handle;
	void *insn;
};

/* Return: false if out of memory. */
bool x86_decoder_open(struct x86_decoder *d);
void x86_decoder_close(struct x86_decoder *d);
/* Like arch.patch.decode().  @disp_at (can be NULL): set to the offset in the instruction of the
 * disp32 of a rip-relative operand, 0 if there is none. */
bool x86_decode_with(const struct x86_decoder *d, const uint8_t *code, size_t size, uint64_t addr,
		     struct arch_insn *insn, uint8_t *disp_at);
bool x86_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);

/* reloc.c */
enum arch_refusal x86_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch);

/* encode.c */
size_t x86_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);
/* A jump from @at to @target: rel32 if it reaches, else through an address that follows it.
 * Return: bytes written to @out (room for X86_FAR_JUMP_LENGTH). */
size_t x86_encode_jump(uint8_t *out, uint64_t at, uint64_t target);
/* Does a rel32 relative to @next reach @target? */
bool x86_reaches(uint64_t next, uint64_t target);

/* prologue.c: arch.unwind.find_frames, arch.unwind.ends_in_call */
bool x86_ends_in_call(const uint8_t *code, size_t size);
void x86_find_frames(const uint8_t *code, size_t size, uint64_t addr, arch_mark_fn *mark,
		     void *ctx);

/* sigframe.c: arch.emergency.build_frame, arch.restart.restarted_number */
size_t x86_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e);
long x86_restarted_number(const uint8_t *code, size_t n);

#endif
