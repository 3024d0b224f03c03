/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes jumps, loads of constants, and the code at a slot's entry. */
#include "arch/aarch64/aarch64.h"

#define B	0x14000000u /* C6.2: b, 26 bits of distance in instructions */
#define BR_X16	0xd61f0200u
#define RET_X17 0xd65f0220u /* unlike br it needs no landing pad (D8.4.5, BTYPE) */
#define LDR_X	0x58000000u /* ldr xN, literal: 19 bits of distance at bit 5 */
#define ADR	0x10000000u
#define ADR_MAX (1 << 20)

bool a64_reaches(uint64_t at, uint64_t target)
{
	int64_t distance = (int64_t)(target - at);

	return distance >= -(128ll << 20) && distance < 128ll << 20;
}

size_t a64_put(uint8_t *out, uint32_t insn)
{
	for (unsigned int i = 0; i < A64_INSN; i++)
		out[i] = (uint8_t)(insn >> 8 * i);
	return A64_INSN;
}

static size_t put64(uint8_t *out, uint64_t value)
{
	return a64_put(out, (uint32_t)value) + a64_put(out + A64_INSN, (uint32_t)(value >> 32));
}

static uint32_t load_literal(unsigned int reg, uint32_t distance)
{
	return LDR_X | distance / 4 << 5 | reg;
}

static uint32_t branch(uint64_t distance)
{
	return B | ((uint32_t)(distance >> 2) & 0x3ffffff);
}

size_t a64_encode_jump(uint8_t *out, uint64_t at, uint64_t target)
{
	size_t n = 0;

	if (a64_reaches(at, target))
		return a64_put(out, branch(target - at));
	n += a64_put(out + n, load_literal(17, 8));
	n += a64_put(out + n, RET_X17);
	return n + put64(out + n, target);
}

size_t a64_encode_constant(uint8_t *out, unsigned int reg, uint64_t value)
{
	size_t n = 0;

	n += a64_put(out + n, load_literal(reg, 8));
	n += a64_put(out + n, branch(12));
	return n + put64(out + n, value);
}

/* x16 and x17 are free at a function's entry: the linker's veneers use them (AAPCS64 6.1.1). */
size_t a64_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry)
{
	uint64_t distance = desc - at;
	size_t n = 0;

	if ((int64_t)distance >= -ADR_MAX && (int64_t)distance < ADR_MAX &&
	    a64_reaches(at + A64_INSN, agent_entry)) {
		uint32_t d = (uint32_t)distance;

		n = a64_put(out, ADR | (d & 3) << 29 | (d >> 2 & 0x7ffff) << 5 | 17);
		return n + a64_put(out + n, branch(agent_entry - at - n));
	}
	n += a64_put(out + n, load_literal(17, 12));
	n += a64_put(out + n, load_literal(16, 16));
	n += a64_put(out + n, BR_X16);
	n += put64(out + n, desc);
	return n + put64(out + n, agent_entry);
}
