/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the files of this folder; the contract is arch/arch.h. */
#ifndef ARCH_X86_64_X86_64_H
#define ARCH_X86_64_X86_64_H

#include "arch/arch.h"

#define X86_JUMP_LENGTH	    5  /* e9 rel32 (Intel SDM, JMP) */
#define X86_FAR_JUMP_LENGTH 14 /* ff 25 00000000, then the address */

bool x86_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn);
enum arch_refusal x86_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch);
size_t x86_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry);

/* A jump from @at to @target: rel32 when it reaches, else through an address behind it.
 * Return: bytes written to @out (room for X86_FAR_JUMP_LENGTH). */
size_t x86_encode_jump(uint8_t *out, uint64_t at, uint64_t target);
bool x86_reaches(uint64_t next, uint64_t target);

#endif
