/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes instructions: A32 and Thumb-2 of ARMv7 (ARM ARM DDI 0406, A8). */
#include "arch/arm/arm.h"

/* Less a margin: an island of a page is within reach if its start is. */
#define B_REACH	      0x1ff0000 /* b: 24 bits of words */
#define THUMB_B_REACH 0xff0000	/* b.w: 24 bits of halfwords */

bool arm_reaches(bool thumb, uint64_t at, uint64_t target)
{
	int64_t distance = (int64_t)(target - at), reach = thumb ? THUMB_B_REACH : B_REACH;

	return distance > -reach && distance < reach;
}

static void emit(struct arm_out *o, const void *bytes, size_t n)
{
	if (o->n + n <= o->size)
		memcpy(o->bytes + o->n, bytes, n);
	o->n += n;
}

void arm_put16(struct arm_out *o, uint32_t insn)
{
	uint16_t half = (uint16_t)insn;

	emit(o, &half, sizeof(half));
}

static void put_word(struct arm_out *o, uint32_t word)
{
	emit(o, &word, sizeof(word));
}

void arm_put32(struct arm_out *o, uint32_t insn)
{
	if (!o->thumb) {
		put_word(o, insn);
		return;
	}
	arm_put16(o, insn >> 16);
	arm_put16(o, insn);
}

/* b.w, encoding T4: imm32 = S:I1:I2:imm10:imm11:0, J = not (I xor S). */
static uint32_t thumb_branch(int32_t distance)
{
	uint32_t d = (uint32_t)distance, s = d >> 24 & 1, i1 = d >> 23 & 1, i2 = d >> 22 & 1;

	return 0xf0009000 | s << 26 | (d >> 12 & 0x3ff) << 16 | (!(i1 ^ s)) << 13 |
	       (!(i2 ^ s)) << 11 | (d >> 1 & 0x7ff);
}

void arm_put_jump(struct arm_out *o, uint64_t target)
{
	uint64_t pc = o->at + o->n + (o->thumb ? 4 : 8);

	if (arm_reaches(o->thumb, pc, target)) {
		arm_put32(o, o->thumb ? thumb_branch((int32_t)(target - pc))
				      : 0xea000000 | ((target - pc) >> 2 & 0xffffff));
	} else if (!o->thumb) {
		arm_put32(o, 0xe51ff004); /* ldr pc, [pc, #-4] */
		put_word(o, (uint32_t)target);
	} else {
		/* ldr.w pc, [pc, #0 or #2]: from the next multiple of 4 after it */
		bool odd = (o->at + o->n) & 2;

		arm_put32(o, 0xf8dff000 | (odd ? 4 : 0));
		if (odd)
			arm_put16(o, 0xbf00);
		put_word(o, (uint32_t)target | ARM_THUMB);
	}
}

/* imm16 of movw and movt: imm4:i:imm3:imm8 in Thumb, imm4:imm12 in A32. */
static uint32_t move16(bool thumb, uint32_t reg, uint32_t half, bool top, uint8_t cond)
{
	if (thumb)
		return (top ? 0xf2c00000 : 0xf2400000) | (half >> 12) << 16 |
		       (half >> 11 & 1) << 26 | (half >> 8 & 7) << 12 | reg << 8 | (half & 0xff);
	return (uint32_t)cond << 28 | (top ? 0x03400000 : 0x03000000) | (half >> 12) << 16 |
	       reg << 12 | (half & 0xfff);
}

void arm_put_constant(struct arm_out *o, uint8_t reg, uint32_t value, uint8_t cond)
{
	arm_put32(o, move16(o->thumb, reg, value & 0xffff, false, cond));
	arm_put32(o, move16(o->thumb, reg, value >> 16, true, cond));
}

unsigned int arm_adds(uint32_t value)
{
	unsigned int n = 0;

	for (; value; value >>= 8)
		n += (value & 0xff) != 0;
	return n;
}

/* A byte at @shift as a modified immediate (A6.3.2): 1bcdefgh rotated right. */
static uint32_t thumb_immediate(uint32_t byte, unsigned int shift)
{
	unsigned int top = 31 - (unsigned int)__builtin_clz(byte << shift), rotation;

	if (!shift)
		return byte;
	rotation = 39 - top;
	byte = (byte << shift) >> (top - 7);
	return (rotation >> 4) << 26 | (rotation >> 1 & 7) << 12 | (rotation & 1) << 7 |
	       (byte & 0x7f);
}

void arm_put_add(struct arm_out *o, uint8_t reg, uint32_t value, uint8_t cond)
{
	for (unsigned int shift = 0; shift < 32; shift += 8) {
		uint32_t byte = value >> shift & 0xff;

		if (!byte)
			continue;
		if (o->thumb)
			arm_put32(o, 0xf1000000 | (uint32_t)reg << 16 | (uint32_t)reg << 8 |
					 thumb_immediate(byte, shift));
		else
			arm_put32(o, (uint32_t)cond << 28 | 0x02800000 | (uint32_t)reg << 16 |
					 (uint32_t)reg << 12 | ((32 - shift) / 2 & 15) << 8 | byte);
	}
}

/* ip is free at a function's entry (AAPCS 6.1.1): the linker's veneers use it, too. */
size_t arm_encode_slot(uint8_t *out, uint64_t at, uint64_t desc, uint64_t agent_entry)
{
	struct arm_out o = {out, 0, 32, at & ~(uint64_t)ARM_THUMB, at & ARM_THUMB};

	arm_put32(&o, o.thumb ? 0xf8dfc004 : 0xe59fc000); /* ldr ip, desc */
	arm_put32(&o, o.thumb ? 0xf8dff004 : 0xe59ff000); /* ldr pc, agent_entry */
	put_word(&o, (uint32_t)desc);
	put_word(&o, (uint32_t)agent_entry);
	return o.n;
}
