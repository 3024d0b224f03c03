/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes jumps and the code at a slot's entry. */
#include <string.h>
#include "arch/x86_64/x86_64.h"

bool x86_reaches(uint64_t next, uint64_t target)
{
	int64_t distance = (int64_t)(target - next);

	return distance == (int32_t)distance;
}

static void put32(uint8_t *out, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(out, &v, sizeof(v));
}

size_t x86_encode_jump(uint8_t *out, uint64_t at, uint64_t target)
{
	if (x86_reaches(at + X86_JUMP_LENGTH, target)) {
		out[0] = 0xe9;
		put32(out + 1, target - (at + X86_JUMP_LENGTH));
		return X86_JUMP_LENGTH;
	}
	memcpy(out, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(out + 6, &target, sizeof(target));
	return X86_FAR_JUMP_LENGTH;
}

size_t x86_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry)
{
	size_t n;

	out[0] = 0x49; /* movabs $desc, %r11: free at a function's entry (psABI 3.2.1) */
	out[1] = 0xbb;
	memcpy(out + 2, &desc, sizeof(desc));
	n = 10;
	return n + x86_encode_jump(out + n, at + n, agent_entry);
}
