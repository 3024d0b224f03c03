/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of a function's first instructions, so that a jump can replace them:
 *
 *	function:  jmp slot (5 bytes) + nops	relocated copy:  first instructions, adjusted
 *		   rest of the function  <----------------------  jmp back
 */
#include <string.h>
#include "arch/x86_64/x86_64.h"

#define NOP  0x90
#define INT3 0xcc

/* A function's bytes. */
struct body {
	const struct x86_decoder *decoder;
	const uint8_t *code;
	size_t size;
	uint64_t addr;
};

struct out {
	uint8_t *bytes;
	size_t n;
	uint64_t at; /* address of bytes[0] */
};

/*
 * Refuses a direct branch of the function, or an address it takes, that is strictly inside the
 * window.  Jumps to its start are refused too: a loop over the entry would go through the hook in
 * each iteration and accumulate frames of the agent.  Calls to the start are recursion and
 * permitted.
 */
static enum arch_refusal scan(const struct body *b, uint64_t window, uint8_t length)
{
	struct arch_insn i;

	for (size_t at = 0; at < b->size; at += i.length) {
		bool jump;

		if (!x86_decode_with(b->decoder, b->code + at, b->size - at, b->addr + at, &i,
				     NULL)) {
			/* Data between code, or an instruction that capstone cannot decode: skip a
			 * byte; decoding is synchronized again after a few. */
			i.length = 1;
			continue;
		}
		if (!i.has_target || i.target < b->addr || i.target >= window + length)
			continue;
		jump = i.kind == ARCH_INSN_JUMP || i.kind == ARCH_INSN_COND_JUMP;
		if (jump || i.target > window)
			return ARCH_REFUSE_BRANCH_INTO;
	}
	return ARCH_OK;
}

/* Does only padding up to the next function follow? */
static bool padding_from(const struct body *b, size_t at)
{
	for (; at < b->size; at++) {
		static const uint8_t nopl[] = {0x0f, 0x1f};
		struct arch_insn i;

		if (b->code[at] == NOP || b->code[at] == INT3 || !b->code[at])
			continue;
		if (!x86_decode_with(b->decoder, b->code + at, b->size - at, b->addr + at, &i,
				     NULL))
			return false;
		/* Long nops (SDM, NOP): 0f 1f and prefixes before it. */
		if (i.kind != ARCH_INSN_PLAIN ||
		    (!memmem(b->code + at, i.length, nopl, sizeof(nopl)) &&
		     b->code[at + i.length - 1] != NOP))
			return false;
		at += i.length - 1u;
	}
	return true;
}

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

static enum arch_refusal emit_pc_relative(struct out *o, const uint8_t *code,
					  const struct arch_insn *i, uint8_t disp_at)
{
	uint64_t next = o->at + o->n + i->length;
	uint32_t disp = (uint32_t)(i->target - next);

	if (!disp_at)
		return ARCH_REFUSE_INSN;
	if (!x86_reaches(next, i->target))
		return ARCH_REFUSE_REACH;
	memcpy(o->bytes + o->n, code, i->length);
	memcpy(o->bytes + o->n + disp_at, &disp, sizeof(disp));
	o->n += i->length;
	return ARCH_OK;
}

/* jmp *slot(%rip): ff /4 (SDM, JMP). */
static bool is_slot_jump(const uint8_t *code, const struct arch_insn *i, uint8_t disp_at)
{
	return i->kind == ARCH_INSN_INDIRECT && disp_at >= 2 && code[disp_at - 2] == 0xff &&
	       (code[disp_at - 1] & 0x38) == 0x20;
}

static enum arch_refusal relocate(struct out *o, const uint8_t *code, const struct arch_insn *i,
				  uint8_t disp_at)
{
	static const uint8_t jmp[] = {0xe9};
	uint8_t jcc[2] = {0x0f, 0};

	switch (i->kind) {
	case ARCH_INSN_PLAIN:
	case ARCH_INSN_RETURN:
		memcpy(o->bytes + o->n, code, i->length);
		o->n += i->length;
		return ARCH_OK;
	case ARCH_INSN_PC_RELATIVE:
		return emit_pc_relative(o, code, i, disp_at);
	case ARCH_INSN_JUMP:
		return emit_branch(o, jmp, 1, i->target);
	case ARCH_INSN_COND_JUMP:
		if ((code[0] & 0xf0) == 0x70) /* jcc rel8 */
			jcc[1] = (uint8_t)(0x80 | (code[0] & 0x0f));
		else if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) /* jcc rel32 */
			jcc[1] = code[1];
		else
			return ARCH_REFUSE_INSN; /* jrcxz, loop, xbegin */
		return emit_branch(o, jcc, 2, i->target);
	case ARCH_INSN_CALL:
		return ARCH_REFUSE_CALL;
	case ARCH_INSN_INDIRECT:
		/* A thunk made by -fno-plt.  A call would leave the copy's address on the stack,
		 * and a register can hold any address. */
		return is_slot_jump(code, i, disp_at) ? emit_pc_relative(o, code, i, disp_at)
						      : ARCH_REFUSE_INSN;
	case ARCH_INSN_TRAP:
		return ARCH_REFUSE_FOREIGN;
	default:
		/* Also a system call: an interrupted one is restarted from its own address. */
		return ARCH_REFUSE_INSN;
	}
}

/* A jump away from the function that is followed by code is another tool's patch; if no code
 * follows, the function is a thunk. */
static bool foreign(const struct body *b, size_t at, const struct arch_insn *i, uint8_t disp_at)
{
	bool away =
	    is_slot_jump(b->code + at, i, disp_at) ||
	    (i->kind == ARCH_INSN_JUMP && (i->target < b->addr || i->target >= b->addr + b->size));

	return away && !padding_from(b, at + i->length);
}

static enum arch_refusal take_window(const struct body *b, size_t skip, struct out *o,
				     struct arch_patch *patch)
{
	bool ended = false;
	struct arch_insn i;
	size_t at;

	for (at = skip; at - skip < X86_JUMP_LENGTH; at += i.length) {
		enum arch_refusal refusal;
		uint8_t disp_at;

		/* After an unconditional end there can be anything. */
		if (ended || at >= b->size)
			return ARCH_REFUSE_SHORT;
		if (!x86_decode_with(b->decoder, b->code + at, b->size - at, b->addr + at, &i,
				     &disp_at))
			return ARCH_REFUSE_INSN;
		if (at == skip && foreign(b, at, &i, disp_at))
			return ARCH_REFUSE_FOREIGN;
		if (patch->insns == sizeof(patch->old_off))
			return ARCH_REFUSE_INSN;
		patch->old_off[patch->insns] = (uint8_t)(at - skip);
		patch->new_off[patch->insns++] = (uint8_t)o->n;
		refusal = relocate(o, b->code + at, &i, disp_at);
		if (refusal != ARCH_OK)
			return refusal;
		ended = i.kind == ARCH_INSN_RETURN || i.kind == ARCH_INSN_JUMP ||
			i.kind == ARCH_INSN_INDIRECT;
	}
	/* At most four one-byte instructions and one of fifteen: 19 bytes, 41 when relocated. */
	patch->length = (uint8_t)(at - skip);
	return ARCH_OK;
}

static enum arch_refusal plan(const struct body *b, uint64_t slot_entry, struct out *o,
			      struct arch_patch *patch)
{
	enum arch_refusal refusal;
	struct arch_insn i;
	size_t skip = 0;

	if (!x86_decode_with(b->decoder, b->code, b->size, b->addr, &i, NULL))
		return b->size ? ARCH_REFUSE_INSN : ARCH_REFUSE_SHORT;
	if (i.kind == ARCH_INSN_LANDING_PAD)
		skip = i.length;
	patch->addr = b->addr + skip;
	refusal = take_window(b, skip, o, patch);
	if (refusal == ARCH_OK)
		refusal = scan(b, patch->addr, patch->length);
	if (refusal != ARCH_OK)
		return refusal;
	o->n += x86_encode_jump(o->bytes + o->n, o->at + o->n, patch->addr + patch->length);
	patch->relocated_length = (uint8_t)o->n;
	if (!x86_reaches(patch->addr + X86_JUMP_LENGTH, slot_entry))
		return ARCH_REFUSE_REACH;
	/* No instruction of the window starts after the jump, so these bytes are not executed.
	 * Nops are the safest content for a disassembler or an unforeseen return address. */
	memset(patch->new_bytes, NOP, sizeof(patch->new_bytes));
	x86_encode_jump(patch->new_bytes, patch->addr, slot_entry);
	return ARCH_OK;
}

enum arch_refusal x86_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				 uint64_t slot_entry, uint64_t relocated_at,
				 struct arch_patch *patch)
{
	struct out o = {patch->relocated, 0, relocated_at};
	struct x86_decoder decoder;
	struct body b = {&decoder, code, size, addr};
	enum arch_refusal refusal;

	memset(patch, 0, sizeof(*patch));
	if (!x86_decoder_open(&decoder))
		return ARCH_REFUSE_INSN;
	refusal = plan(&b, slot_entry, &o, patch);
	x86_decoder_close(&decoder);
	return refusal;
}
