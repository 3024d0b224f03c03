/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes one instruction, as far as it matters for patching: the encodings of C4.1 by mask and
 * value. */
#include <string.h>
#include "arch/aarch64/aarch64.h"

/* The first match is used. */
static const struct {
	uint32_t mask, value;
	enum a64_form form;
} forms[] = {
    {0x9f000000, 0x10000000, A64_ADR},
    {0x9f000000, 0x90000000, A64_ADRP},
    {0x3b000000, 0x18000000, A64_LITERAL},
    {0xff000000, 0x54000000, A64_COND}, /* b.cond, bc.cond */
    {0x7e000000, 0x34000000, A64_COND}, /* cbz, cbnz */
    {0x7e000000, 0x36000000, A64_TEST},
    {0xfc000000, 0x14000000, A64_B},
    {0xfc000000, 0x94000000, A64_BL},
    {0xfee00000, 0xd6200000, A64_OTHER_CALL}, /* blr, blraaz; blraa has bit 24 set */
    {0xfee00000, 0xd6400000, A64_RET},	      /* ret, retaa, retab */
    {0xfe000000, 0xd6000000, A64_BR},
    {0xffe0001f, 0xd4000001, A64_SVC},
    {0xff000000, 0xd4000000, A64_TRAP}, /* brk, hlt, hvc ... */
    {0xffff0000, 0x00000000, A64_TRAP}, /* udf */
    {0xffffff3f, 0xd503241f, A64_BTI},	/* hint #32, 34, 36, 38 */
    {0xffffffbf, 0xd503233f, A64_SIGN}, /* hint #25, 27 */
};

enum a64_form a64_form(uint32_t insn)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if ((insn & forms[i].mask) == forms[i].value)
			return forms[i].form;
	}
	return A64_PLAIN;
}

/* Bits @low to @low + @bits - 1 of @insn as a signed number. */
static int64_t field(uint32_t insn, unsigned int low, unsigned int bits)
{
	return (int64_t)((uint64_t)insn << (64 - low - bits)) >> (64 - bits);
}

uint64_t a64_target(uint32_t insn, uint64_t at)
{
	int64_t adr = field(insn, 5, 19) * 4 + (insn >> 29 & 3);

	switch (a64_form(insn)) {
	case A64_ADR:
		return at + (uint64_t)adr;
	case A64_ADRP:
		return (at & ~0xfffull) + (uint64_t)adr * 4096;
	case A64_LITERAL:
	case A64_COND:
		return at + (uint64_t)field(insn, 5, 19) * 4;
	case A64_TEST:
		return at + (uint64_t)field(insn, 5, 14) * 4;
	default:
		return at + (uint64_t)field(insn, 0, 26) * 4;
	}
}

bool a64_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	static const enum arch_insn_kind kind[] = {
	    [A64_PLAIN] = ARCH_INSN_PLAIN,	[A64_ADR] = ARCH_INSN_PC_RELATIVE,
	    [A64_ADRP] = ARCH_INSN_PC_RELATIVE, [A64_LITERAL] = ARCH_INSN_PC_RELATIVE,
	    [A64_COND] = ARCH_INSN_COND_JUMP,	[A64_TEST] = ARCH_INSN_COND_JUMP,
	    [A64_B] = ARCH_INSN_JUMP,		[A64_BL] = ARCH_INSN_CALL,
	    [A64_OTHER_CALL] = ARCH_INSN_CALL,	[A64_BR] = ARCH_INSN_INDIRECT,
	    [A64_RET] = ARCH_INSN_RETURN,	[A64_SVC] = ARCH_INSN_SYSCALL,
	    [A64_TRAP] = ARCH_INSN_TRAP,	[A64_BTI] = ARCH_INSN_LANDING_PAD,
	    [A64_SIGN] = ARCH_INSN_LANDING_PAD};
	enum a64_form form;
	uint32_t word;

	if (size < A64_INSN)
		return false;
	word = (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
	       (uint32_t)code[3] << 24;
	form = a64_form(word);
	*insn = (struct arch_insn){.kind = kind[form], .length = A64_INSN};
	insn->has_target = form >= A64_ADR && form <= A64_BL;
	if (insn->has_target)
		insn->target = a64_target(word, addr);
	return true;
}
