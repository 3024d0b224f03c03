/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Relocation of a function's first instructions, so that a jump can replace them:
 *
 *	function:  j slot; nop			relocated copy:  $t9 = function address
 *		   rest of the function  <-------------  \	 first instructions
 *		   a branch's target     <------------	  \----	 jump back
 *							 \------ jump for a taken branch
 *
 * A branch is relocated with its delay slot and ends the window; the branch in the copy leads to a
 * jump after the copy.  If no island is in the function's region of 256 MiB, all jumps are long
 * ones through $at, which no instruction in the window may use in that case.
 */
#include <string.h>
#include "arch/mips64/mips64.h"

#define PREAMBLE 16
#define STUBS	 4

/* A function's bytes. */
struct body {
	const uint8_t *code;
	size_t size;
	uint64_t addr;
	bool big;
};

struct out {
	uint8_t *bytes;
	size_t n, size;
	uint64_t at; /* address of bytes[0] */
	bool big;
	struct {
		size_t branch; /* offset of the branch to this jump */
		uint64_t target;
	} stub[STUBS];
	size_t nstubs;
	bool far;     /* a jump uses $at ... */
	bool uses_at; /* ... and an instruction of the window uses it, or can */
};

static uint32_t word_at(const struct body *b, size_t at)
{
	return mips_word(b->code + at, b->big);
}

/*
 * Refuses a direct branch of the function into the window, or to its start, which would go through
 * the hook in each iteration.  Calls to the start are recursion and permitted.
 */
static enum arch_refusal scan(const struct body *b, size_t length)
{
	for (size_t at = 0; at + MIPS_INSN <= b->size; at += MIPS_INSN) {
		uint64_t target[2];
		struct arch_insn i;
		int n = mips_targets(word_at(b, at), b->addr + at, target);

		mips_decode(b->code + at, MIPS_INSN, b->addr + at, &i, b->big);
		for (int k = 0; k < n; k++) {
			if (target[k] - b->addr >= length)
				continue;
			if (i.kind != ARCH_INSN_CALL || target[k] != b->addr)
				return ARCH_REFUSE_BRANCH_INTO;
		}
	}
	return ARCH_OK;
}

static bool padding_from(const struct body *b, size_t at)
{
	for (; at + MIPS_INSN <= b->size; at += MIPS_INSN) {
		if (word_at(b, at) != MIPS_NOP)
			return false;
	}
	return true;
}

static bool room(const struct out *o, size_t n)
{
	return o->n + n <= o->size;
}

/* Can @word read or write $at? */
static bool uses_at(uint32_t word)
{
	uint32_t opcode = word >> 26;
	bool second = opcode != 0x01 && opcode != 0x11; /* regimm, coprocessor 1: not a register */
	bool third = opcode == 0x00 || opcode == 0x1c || opcode == 0x1f; /* else an immediate */

	return (word >> 21 & 31) == MIPS_R_AT || (second && (word >> 16 & 31) == MIPS_R_AT) ||
	       (third && (word >> 11 & 31) == MIPS_R_AT);
}

static void emit(struct out *o, uint32_t word)
{
	mips_put_word(o->bytes + o->n, word, o->big);
	o->n += MIPS_INSN;
	o->uses_at |= uses_at(word);
}

static enum arch_refusal put_jump(struct out *o, uint64_t target)
{
	size_t n;

	if (!room(o, MIPS_FAR_LENGTH))
		return ARCH_REFUSE_INSN;
	n = mips_encode_jump(o->bytes + o->n, o->at + o->n, target, o->big);
	o->n += n;
	o->far |= n == MIPS_FAR_LENGTH;
	return ARCH_OK;
}

static enum arch_refusal relocate_branch(struct out *o, uint32_t word, const struct arch_insn *i)
{
	if (o->nstubs == STUBS)
		return ARCH_REFUSE_INSN;
	o->stub[o->nstubs].branch = o->n;
	o->stub[o->nstubs++].target = i->target;
	/* b instead of j: a relative branch in either case. */
	emit(o, word >> 26 == 2 ? 0x10000000u : word & 0xffff0000u);
	return ARCH_OK;
}

static enum arch_refusal relocate(struct out *o, uint32_t word, const struct arch_insn *i)
{
	switch (i->kind) {
	case ARCH_INSN_PLAIN:
	case ARCH_INSN_RETURN:
		emit(o, word);
		return ARCH_OK;
	case ARCH_INSN_JUMP:
	case ARCH_INSN_COND_JUMP:
		/* A branch without a delay slot: release 6, or another processor's. */
		return mips_has_slot(word) ? relocate_branch(o, word, i) : ARCH_REFUSE_INSN;
	case ARCH_INSN_INDIRECT:
		if (!mips_has_slot(word))
			return ARCH_REFUSE_INSN;
		emit(o, word);
		return ARCH_OK;
	case ARCH_INSN_CALL:
		return ARCH_REFUSE_CALL;
	case ARCH_INSN_TRAP:
		return ARCH_REFUSE_FOREIGN;
	default:
		return ARCH_REFUSE_INSN;
	}
}

/* munmap is never restarted, so its system call can be in the copy: in glibc the number and the
 * call are the first two instructions. */
static bool never_restarted(const struct body *b, size_t at)
{
	return at == MIPS_INSN && word_at(b, at) == MIPS_SYSCALL &&
	       (word_at(b, 0) == 0x24021393u || word_at(b, 0) == 0x64021393u);
}

/* Records the position of the window at @at. */
static bool map(struct arch_patch *patch, size_t at, const struct out *o)
{
	if (patch->insns == sizeof(patch->old_off))
		return false;
	patch->old_off[patch->insns] = (uint8_t)at;
	patch->new_off[patch->insns++] = (uint8_t)o->n;
	return true;
}

static enum arch_refusal take_one(const struct body *b, size_t at, struct out *o, bool slot,
				  struct arch_patch *patch, struct arch_insn *i)
{
	uint32_t word;

	if (at + MIPS_INSN > b->size)
		return ARCH_REFUSE_SHORT;
	if (!map(patch, at, o) || !room(o, MIPS_INSN))
		return ARCH_REFUSE_INSN;
	word = word_at(b, at);
	mips_decode(b->code + at, MIPS_INSN, b->addr + at, i, b->big);
	if (slot && i->kind != ARCH_INSN_PLAIN)
		return ARCH_REFUSE_INSN;
	if (never_restarted(b, at)) {
		emit(o, word);
		return ARCH_OK;
	}
	return relocate(o, word, i);
}

static bool ends(enum arch_insn_kind kind)
{
	return kind == ARCH_INSN_RETURN || kind == ARCH_INSN_JUMP || kind == ARCH_INSN_INDIRECT;
}

/* A jump away that is followed by code is another tool's patch; if no code follows, the function is
 * a thunk. */
static bool foreign(const struct body *b, const struct arch_insn *i)
{
	return i->kind == ARCH_INSN_JUMP && i->target - b->addr >= b->size &&
	       !padding_from(b, 2 * MIPS_INSN);
}

static enum arch_refusal take_window(const struct body *b, size_t least, struct out *o,
				     struct arch_patch *patch)
{
	bool ended = false;
	size_t at = 0;

	while (at < least) {
		struct arch_insn i, slot;
		enum arch_refusal refusal;

		if (ended)
			return ARCH_REFUSE_SHORT;
		refusal = take_one(b, at, o, false, patch, &i);
		if (refusal == ARCH_OK && !at && foreign(b, &i))
			refusal = ARCH_REFUSE_FOREIGN;
		if (refusal != ARCH_OK)
			return refusal;
		ended = ends(i.kind);
		at += MIPS_INSN;
		if (!mips_has_slot(word_at(b, at - MIPS_INSN)))
			continue;
		refusal = take_one(b, at, o, true, patch, &slot);
		if (refusal != ARCH_OK)
			return refusal;
		at += MIPS_INSN;
	}
	patch->length = (uint8_t)at;
	return at <= sizeof(patch->new_bytes) ? ARCH_OK : ARCH_REFUSE_INSN;
}

/* Writes the jump back, and those of the branches.  A thread at a branch's jump cannot be moved back
 * to the branch, because its delay slot was executed. */
static enum arch_refusal put_jumps(struct out *o, struct arch_patch *patch)
{
	enum arch_refusal refusal;

	if (!map(patch, patch->length, o))
		return ARCH_REFUSE_INSN;
	refusal = put_jump(o, patch->addr + patch->length);
	for (size_t k = 0; k < o->nstubs && refusal == ARCH_OK; k++) {
		uint8_t *branch = o->bytes + o->stub[k].branch;
		size_t words = (o->n - o->stub[k].branch) / MIPS_INSN - 1;

		mips_put_word(branch, mips_word(branch, o->big) | (uint32_t)words, o->big);
		refusal = put_jump(o, o->stub[k].target);
	}
	return refusal == ARCH_OK && o->far && o->uses_at ? ARCH_REFUSE_REACH : refusal;
}

enum arch_refusal mips_plan_patch(const uint8_t *code, size_t size, uint64_t addr,
				  uint64_t slot_entry, uint64_t relocated_at,
				  struct arch_patch *patch, bool big)
{
	bool far = !mips_same_region(addr + MIPS_INSN, slot_entry);
	struct out o = {.bytes = patch->relocated,
			.size = sizeof(patch->relocated),
			.at = relocated_at,
			.big = big,
			.far = far};
	struct body b = {code, size, addr, big};
	enum arch_refusal refusal;

	memset(patch, 0, sizeof(*patch));
	if (addr % MIPS_INSN) /* MIPS16, microMIPS */
		return ARCH_REFUSE_INSN;
	patch->addr = addr;
	mips_load_address(o.bytes, MIPS_R_T9, addr, big);
	o.n = PREAMBLE;
	refusal = take_window(&b, far ? MIPS_FAR_LENGTH : MIPS_JUMP_LENGTH, &o, patch);
	if (refusal == ARCH_OK)
		refusal = scan(&b, patch->length);
	if (refusal == ARCH_OK)
		refusal = put_jumps(&o, patch);
	if (refusal != ARCH_OK)
		return refusal;
	patch->relocated_length = (uint8_t)o.n;
	/* Zero is a nop. */
	mips_encode_jump(patch->new_bytes, addr, slot_entry, big);
	return ARCH_OK;
}
