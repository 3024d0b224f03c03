/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of a function's first instructions, so that a jump can take their place:
 *
 *	function:  jmp slot (5 bytes) + nops	relocated copy:  first instructions, adjusted
 *		   rest of the function  <----------------------  jmp back
 */
#include <string.h>
#include "arch/x86_64/x86_64.h"

#define NOP 0x90

/* Every direct branch of the function, and every pc-relative address it takes, must stay out of
 * the window except at its very start. */
static enum arch_refusal scan(const uint8_t *code, size_t size, uint64_t addr, uint64_t window,
			      uint8_t length)
{
	struct arch_insn i;

	for (size_t at = 0; at < size; at += i.length) {
		if (!x86_decode(code + at, size - at, addr + at, &i)) {
			/* Data between code, or an instruction capstone does not know: skip a
			 * byte; a branch in there would be met again once in step. */
			i.length = 1;
			continue;
		}
		if (i.has_target && i.target > window && i.target < window + length)
			return ARCH_REFUSE_BRANCH_INTO;
	}
	return ARCH_OK;
}

/* Where the disp32 of a rip-relative operand lies in an instruction: it is the one that gives the
 * target. */
static int find_disp32(const uint8_t *code, const struct arch_insn *i, uint64_t addr)
{
	int32_t want = (int32_t)(i->target - (addr + i->length)), have;

	for (int at = i->length - 4; at >= 2; at--) {
		memcpy(&have, code + at, sizeof(have));
		/* modrm with mod 0, rm 5 precedes a rip-relative displacement (SDM 2.2.1.6). */
		if (have == want && (code[at - 1] & 0xc7) == 0x05)
			return at;
	}
	return -1;
}

struct out {
	uint8_t *bytes;
	size_t n;
	uint64_t at; /* address of bytes[0] */
};

static enum arch_refusal emit_branch(struct out *o, const uint8_t *opcode, size_t opcode_length,
				     uint64_t target)
{
	uint64_t next = o->at + o->n + opcode_length + 4;
	uint32_t rel = (uint32_t)(target - next);

	if (!x86_reaches(next, target))
		return ARCH_REFUSE_REACH;
	memcpy(o->bytes + o->n, opcode, opcode_length);
	memcpy(o->bytes + o->n + opcode_length, &rel, sizeof(rel));
	o->n += opcode_length + 4;
	return ARCH_OK;
}

static enum arch_refusal relocate(struct out *o, const uint8_t *code, const struct arch_insn *i,
				  uint64_t addr)
{
	static const uint8_t jmp[] = {0xe9};
	uint8_t jcc[2] = {0x0f, 0};
	uint64_t next = o->at + o->n + i->length;
	uint32_t disp;
	int at;

	switch (i->kind) {
	case ARCH_INSN_PLAIN:
	case ARCH_INSN_RETURN:
		memcpy(o->bytes + o->n, code, i->length);
		o->n += i->length;
		return ARCH_OK;
	case ARCH_INSN_PC_RELATIVE:
		at = find_disp32(code, i, addr);
		if (at < 0)
			return ARCH_REFUSE_INSN;
		if (!x86_reaches(next, i->target))
			return ARCH_REFUSE_REACH;
		memcpy(o->bytes + o->n, code, i->length);
		disp = (uint32_t)(i->target - next);
		memcpy(o->bytes + o->n + at, &disp, sizeof(disp));
		o->n += i->length;
		return ARCH_OK;
	case ARCH_INSN_JUMP:
		return emit_branch(o, jmp, 1, i->target);
	case ARCH_INSN_COND_JUMP:
		if ((code[0] & 0xf0) == 0x70) /* jcc rel8 */
			jcc[1] = (uint8_t)(0x80 | (code[0] & 0x0f));
		else if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) /* jcc rel32 */
			jcc[1] = code[1];
		else
			return ARCH_REFUSE_INSN; /* jrcxz, loop */
		return emit_branch(o, jcc, 2, i->target);
	case ARCH_INSN_CALL:
		return ARCH_REFUSE_CALL;
	case ARCH_INSN_TRAP:
		return ARCH_REFUSE_FOREIGN;
	default:
		return ARCH_REFUSE_INSN;
	}
}

enum arch_refusal x86_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch)
{
	struct out o = {patch->relocated, 0, relocated_at};
	enum arch_refusal refusal;
	size_t skip = 0, at;
	struct arch_insn i;
	bool ended = false;

	memset(patch, 0, sizeof(*patch));
	if (!x86_decode(code, size, addr, &i))
		return ARCH_REFUSE_INSN;
	if (i.kind == ARCH_INSN_LANDING_PAD)
		skip = i.length;
	patch->addr = addr + skip;
	for (at = skip; at - skip < X86_JUMP_LENGTH; at += i.length) {
		if (ended || at >= size)
			return ARCH_REFUSE_SHORT;
		if (!x86_decode(code + at, size - at, addr + at, &i))
			return ARCH_REFUSE_INSN;
		/* Somebody's patch at the entry is a jump far away that more code follows. */
		if (i.kind == ARCH_INSN_JUMP && at == skip && at + i.length < size &&
		    (i.target < addr || i.target >= addr + size))
			return ARCH_REFUSE_FOREIGN;
		if (patch->insns == sizeof(patch->old_off))
			return ARCH_REFUSE_INSN;
		patch->old_off[patch->insns] = (uint8_t)(at - skip);
		patch->new_off[patch->insns++] = (uint8_t)o.n;
		refusal = relocate(&o, code + at, &i, addr + at);
		if (refusal != ARCH_OK)
			return refusal;
		/* What follows an unconditional end may be anything. */
		ended = i.kind == ARCH_INSN_RETURN || i.kind == ARCH_INSN_JUMP;
	}
	patch->length = (uint8_t)(at - skip);
	refusal = scan(code, size, addr, patch->addr, patch->length);
	if (refusal != ARCH_OK)
		return refusal;
	o.n += x86_encode_jump(o.bytes + o.n, o.at + o.n, patch->addr + patch->length);
	patch->relocated_length = (uint8_t)o.n;
	if (!x86_reaches(patch->addr + X86_JUMP_LENGTH, slot_entry))
		return ARCH_REFUSE_REACH;
	/* Nops behind the jump: nobody runs them, but a disassembler shows a clean function. */
	memset(patch->new_bytes, NOP, sizeof(patch->new_bytes));
	x86_encode_jump(patch->new_bytes, patch->addr, slot_entry);
	return ARCH_OK;
}
