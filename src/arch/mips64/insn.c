/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Decodes one instruction, as far as it matters for patching: MIPS64 Architecture for Programmers,
 * Volume II-A, tables of opcodes; releases 2 to 6.  If a release gave an opcode another meaning and
 * one of the two is a branch, it is treated as that branch.
 */
#include "arch/mips64/mips64.h"

enum form { NO_TARGET, REL16, REL21, REL26, REGION26 };

struct shape {
	enum arch_insn_kind kind;
	enum form form;
	bool slot; /* has a delay slot: the next instruction is executed with it */
};

static const struct shape plain = {ARCH_INSN_PLAIN, NO_TARGET, false};

uint32_t mips_word(const uint8_t *code, bool big)
{
	return big ? (uint32_t)code[0] << 24 | (uint32_t)code[1] << 16 | (uint32_t)code[2] << 8 |
			 code[3]
		   : (uint32_t)code[3] << 24 | (uint32_t)code[2] << 16 | (uint32_t)code[1] << 8 |
			 code[0];
}

void mips_put_word(uint8_t *out, uint32_t word, bool big)
{
	for (int i = 0; i < 4; i++)
		out[big ? 3 - i : i] = (uint8_t)(word >> 8 * i);
}

static uint32_t rs(uint32_t w)
{
	return w >> 21 & 31;
}

static uint32_t rt(uint32_t w)
{
	return w >> 16 & 31;
}

static struct shape special(uint32_t w)
{
	switch (w & 63) {
	case 9:
		if (w >> 11 & 31) /* jalr with a link register */
			return (struct shape){ARCH_INSN_CALL, NO_TARGET, true};
		/* fallthrough */
	case 8: /* jr */
		return (struct shape){rs(w) == MIPS_R_RA ? ARCH_INSN_RETURN : ARCH_INSN_INDIRECT,
				      NO_TARGET, true};
	case 12:
		return (struct shape){ARCH_INSN_SYSCALL, NO_TARGET, false};
	case 13: /* break */
	case 14: /* sdbbp (release 6) */
		return (struct shape){ARCH_INSN_TRAP, NO_TARGET, false};
	}
	return plain;
}

static struct shape regimm(uint32_t w)
{
	switch (rt(w)) {
	case 0: /* bltz bgez bltzl bgezl */
	case 1:
	case 2:
	case 3:
	case 0x1c: /* bposge32 */
		return (struct shape){ARCH_INSN_COND_JUMP, REL16, true};
	case 0x10: /* bltzal bgezal bltzall bgezall; bal, nal */
	case 0x11:
	case 0x12:
	case 0x13:
		return (struct shape){ARCH_INSN_CALL, REL16, true};
	case 0x17: /* sigrie (release 6) */
		return (struct shape){ARCH_INSN_TRAP, NO_TARGET, false};
	}
	return plain;
}

/* Branches on coprocessor conditions, and on vectors (MSA). */
static struct shape coprocessor(uint32_t w)
{
	uint32_t format = rs(w);

	if (format == 8 || format == 9 || format == 0xd || format == 0xb || format == 0xf ||
	    format >= 0x18)
		return (struct shape){ARCH_INSN_COND_JUMP, REL16, true};
	return plain;
}

/* blez, bgtz and their variants; in release 6 with a second register, without delay slot, and some
 * with a link. */
static struct shape compare_and_branch(uint32_t w, bool links)
{
	bool link = links && rt(w) && (!rs(w) || rs(w) == rt(w));

	return (struct shape){link ? ARCH_INSN_CALL : ARCH_INSN_COND_JUMP, REL16, !rt(w)};
}

static struct shape shape_of(uint32_t w)
{
	switch (w >> 26) {
	case 0x00:
		return special(w);
	case 0x01:
		return regimm(w);
	case 0x02: /* j */
		return (struct shape){ARCH_INSN_JUMP, REGION26, true};
	case 0x03: /* jal */
	case 0x1d: /* jalx */
		return (struct shape){ARCH_INSN_CALL, REGION26, true};
	case 0x04: /* beq, b */
		return (struct shape){rs(w) == rt(w) ? ARCH_INSN_JUMP : ARCH_INSN_COND_JUMP, REL16,
				      true};
	case 0x05: /* bne */
	case 0x14: /* beql */
	case 0x15: /* bnel */
		return (struct shape){ARCH_INSN_COND_JUMP, REL16, true};
	case 0x06: /* blez */
	case 0x07: /* bgtz */
		return compare_and_branch(w, true);
	case 0x16: /* blezl */
	case 0x17: /* bgtzl */
		return compare_and_branch(w, false);
	case 0x08: /* beqc, beqzalc, bovc (before release 6 addi, which no compiler emits) */
	case 0x18: /* bnec, bnezalc, bnvc (daddi) */
		return (struct shape){rs(w) ? ARCH_INSN_COND_JUMP : ARCH_INSN_CALL, REL16, false};
	case 0x11:
	case 0x12:
		return coprocessor(w);
	case 0x10: /* eret, deret and other privileged instructions are not part of a prologue */
		return w >> 25 & 1 ? (struct shape){ARCH_INSN_TRAP, NO_TARGET, false} : plain;
	case 0x1c: /* sdbbp */
		return (w & 63) == 63 ? (struct shape){ARCH_INSN_TRAP, NO_TARGET, false} : plain;
	case 0x32: /* bc (release 6), bbit0 (Octeon) */
		return (struct shape){ARCH_INSN_JUMP, REL26, false};
	case 0x3a: /* balc, bbit1 */
		return (struct shape){ARCH_INSN_CALL, REL26, false};
	case 0x36: /* beqzc, jic, bbit032 */
	case 0x3e: /* bnezc, jialc, bbit132 */
		if (rs(w))
			return (struct shape){ARCH_INSN_COND_JUMP, REL21, false};
		return (struct shape){ARCH_INSN_INDIRECT, NO_TARGET, false};
	case 0x3b: /* addiupc, lwpc, auipc, ... (release 6) */
		return (struct shape){ARCH_INSN_PC_RELATIVE, NO_TARGET, false};
	}
	return plain;
}

/* @bits: width of the offset, counted in instructions from the next one. */
static uint64_t relative(uint32_t w, uint64_t addr, int bits)
{
	int64_t offset = (int64_t)((uint64_t)w << (64 - bits)) >> (64 - bits);

	return addr + MIPS_INSN + (uint64_t)(offset * 4);
}

static uint64_t target_of(uint32_t w, uint64_t addr, enum form form)
{
	switch (form) {
	case REL16:
		return relative(w, addr, 16);
	case REL21:
		return relative(w, addr, 21);
	case REL26:
		return relative(w, addr, 26);
	default:
		return ((addr + MIPS_INSN) & ~(MIPS_REGION - 1)) | (uint64_t)(w & 0x3ffffff) << 2;
	}
}

bool mips_has_slot(uint32_t word)
{
	return shape_of(word).slot;
}

int mips_targets(uint32_t word, uint64_t addr, uint64_t target[2])
{
	struct shape s = shape_of(word);
	int n = 0;

	if (s.form != NO_TARGET)
		target[n++] = target_of(word, addr, s.form);
	/* Octeon's bbit* instructions. */
	if ((word >> 26 & 0x33) == 0x32)
		target[n++] = target_of(word, addr, REL16);
	return n;
}

bool mips_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn, bool big)
{
	struct shape s;
	uint32_t w;

	if (size < MIPS_INSN || addr % MIPS_INSN)
		return false;
	w = mips_word(code, big);
	s = shape_of(w);
	*insn = (struct arch_insn){.kind = s.kind, .length = MIPS_INSN};
	if (s.form != NO_TARGET) {
		insn->has_target = true;
		insn->target = target_of(w, addr, s.form);
	}
	return true;
}
