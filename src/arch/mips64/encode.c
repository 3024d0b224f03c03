/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes instructions: MIPS64 Architecture for Programmers, Volume II-A. */
#include "arch/mips64/mips64.h"

#define T9 25u

bool mips_same_region(uint64_t delay_slot, uint64_t target)
{
	return delay_slot / MIPS_REGION == target / MIPS_REGION;
}

static uint32_t ori(uint32_t reg, uint64_t immediate)
{
	return 0x34000000u | reg << 21 | reg << 16 | (uint32_t)(immediate & 0xffff);
}

void mips_load_address(uint8_t *out, uint32_t reg, uint64_t value, bool big)
{
	/* User addresses have less than 48 bits, so lui's sign extension has no effect. */
	mips_put_word(out, 0x3c000000u | reg << 16 | (uint32_t)(value >> 32 & 0xffff), big);
	mips_put_word(out + 4, ori(reg, value >> 16), big);
	mips_put_word(out + 8, 0x00000438u | reg << 16 | reg << 11, big); /* dsll reg, 16 */
	mips_put_word(out + 12, ori(reg, value), big);
}

static uint32_t jr(uint32_t reg)
{
	return 0x00000008u | reg << 21;
}

size_t mips_encode_jump(uint8_t *out, uint64_t at, uint64_t target, bool big)
{
	if (mips_same_region(at + MIPS_INSN, target)) {
		mips_put_word(out, 0x08000000u | (uint32_t)(target >> 2 & 0x3ffffff), big);
		mips_put_word(out + 4, MIPS_NOP, big);
		return MIPS_JUMP_LENGTH;
	}
	mips_load_address(out, MIPS_R_AT, target, big);
	mips_put_word(out + 16, jr(MIPS_R_AT), big);
	mips_put_word(out + 20, MIPS_NOP, big);
	return MIPS_FAR_LENGTH;
}

/* $at is free at a function's entry.  $t9, the function's own address, is loaded again by the
 * relocated copy; here it is the address of the agent's entry. */
size_t mips_encode_slot(uint8_t *out, uint64_t desc, uint64_t agent_entry, bool big)
{
	uint8_t address[16];

	mips_load_address(out, T9, agent_entry, big);
	mips_load_address(address, MIPS_R_AT, desc, big);
	__builtin_memcpy(out + 16, address, 12);
	mips_put_word(out + 28, jr(T9), big);
	__builtin_memcpy(out + 32, address + 12, 4); /* delay slot */
	return 36;
}
