/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames in MIPS64 code (MIPS64 Architecture For Programmers, volume II-A, release 2). */
#include "arch/mips64/frame.h"

#include <elf.h>

enum { ZERO = 0, T9 = 25, SP = 29, RA = 31 };

struct fields {
	unsigned op, rs, rt, rd, funct;
	int32_t imm;
};

static struct fields split(uint32_t word)
{
	return (struct fields){.op = word >> 26,
			       .rs = word >> 21 & 31,
			       .rt = word >> 16 & 31,
			       .rd = word >> 11 & 31,
			       .funct = word & 63,
			       .imm = (int16_t)word};
}

static void branch(struct arch_frame_insn *i, uint64_t addr, int32_t imm, enum arch_flow flow)
{
	i->flow = (uint8_t)flow;
	i->delay = true;
	i->has_target = true;
	i->target = addr + 4 + (uint64_t)((int64_t)imm * 4);
}

/* The SPECIAL opcode: register operations. */
static void special(struct arch_frame_insn *i, const struct fields *f)
{
	bool move = f->rt == ZERO || f->rs == ZERO;
	unsigned from = f->rt == ZERO ? f->rs : f->rt;

	switch (f->funct) {
	case 0x08: /* jr; tail calls in position independent code use t9 */
		i->flow = f->rs == RA || f->rs == T9 ? ARCH_FLOW_EXIT : ARCH_FLOW_SWITCH;
		i->delay = true;
		return;
	case 0x09: /* jalr */
		i->flow = f->rd == RA ? ARCH_FLOW_CALL : ARCH_FLOW_NEXT;
		if (f->rd == ZERO)
			i->flow = f->rs == RA || f->rs == T9 ? ARCH_FLOW_EXIT : ARCH_FLOW_SWITCH;
		i->delay = true;
		return;
	case 0x0d: /* break */
		i->flow = ARCH_FLOW_EXIT;
		return;
	case 0x21: /* addu */
	case 0x25: /* or */
	case 0x2d: /* daddu */
		if (f->rd == SP && move) {
			i->sp = ARCH_SP_FROM;
			i->sp_reg = (uint8_t)from;
		} else if (f->rd == SP) {
			i->sp = f->rs == SP || f->rt == SP ? ARCH_SP_ADD_REG : ARCH_SP_LOST;
			i->sp_reg = (uint8_t)(f->rs == SP ? f->rt : f->rs);
			i->sp_n = 1;
		} else if (move && from == SP) {
			i->copy = (uint8_t)f->rd;
		}
		break;
	case 0x2f: /* dsubu */
		if (f->rd == SP) {
			i->sp = f->rs == SP ? ARCH_SP_ADD_REG : ARCH_SP_LOST;
			i->sp_reg = (uint8_t)f->rt;
			i->sp_n = -1;
		}
		break;
	default:
		if (f->rd == SP)
			i->sp = ARCH_SP_LOST;
	}
	i->writes = 1u << f->rd;
}

static void add_immediate(struct arch_frame_insn *i, const struct fields *f)
{
	i->writes = 1u << f->rt;
	if (f->rs == SP && f->rt == SP) {
		i->sp = ARCH_SP_ADD;
		i->sp_n = f->imm;
		i->prologue = f->imm < 0;
	} else if (f->rt == SP) {
		i->sp = ARCH_SP_FROM;
		i->sp_reg = (uint8_t)f->rs;
		i->sp_n = f->imm;
	} else if (f->rs == SP) {
		i->copy = (uint8_t)f->rt;
		i->copy_n = f->imm;
	} else if (f->rs == ZERO) {
		i->constant = (uint8_t)f->rt;
		i->constant_n = f->imm;
	} else if (f->rs == f->rt) {
		i->add = (uint8_t)f->rt;
		i->add_n = f->imm;
	}
}

static void immediate(struct arch_frame_insn *i, const struct fields *f)
{
	i->writes = 1u << f->rt;
	if (f->op == 0x0f) { /* lui */
		i->constant = (uint8_t)f->rt;
		i->constant_n = (int32_t)((uint32_t)f->imm << 16);
	} else if (f->op == 0x0d && (f->rs == f->rt || f->rs == ZERO)) { /* ori */
		i->constant = (uint8_t)f->rt;
		i->constant_n = f->imm & 0xffff;
		i->more = f->rs == f->rt;
	}
	if (f->rt == SP)
		i->sp = ARCH_SP_LOST;
}

static void regimm(struct arch_frame_insn *i, const struct fields *f, uint64_t addr)
{
	if (f->rt >= 0x10 && f->rt <= 0x13) /* bltzal, bgezal: bal */
		branch(i, addr, f->imm, ARCH_FLOW_CALL);
	else if (f->rt <= 0x03)
		branch(i, addr, f->imm, ARCH_FLOW_BRANCH);
}

static bool loads_register(unsigned op)
{
	return op == 0x1a || op == 0x1b || (op >= 0x20 && op <= 0x27) || op == 0x30 || op == 0x34;
}

bool mips_frame_insn(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		     uint8_t mode, struct arch_frame_insn *i)
{
	uint32_t word = 0;
	struct fields f;

	(void)mode;
	if (size < 4)
		return false;
	for (int k = 0; k < 4; k++)
		word |= (uint32_t)code[k] << 8 * (arch->elf_data == ELFDATA2MSB ? 3 - k : k);
	f = split(word);
	*i = arch_frame_plain(4);
	switch (f.op) {
	case 0x00:
		special(i, &f);
		break;
	case 0x01:
		regimm(i, &f, addr);
		break;
	case 0x02: /* j, jal */
	case 0x03:
		i->flow = f.op == 2 ? ARCH_FLOW_JUMP : ARCH_FLOW_CALL;
		i->delay = i->has_target = true;
		i->target = ((addr + 4) & ~0xfffffffull) | (uint64_t)(word & 0x3ffffff) << 2;
		break;
	case 0x04: /* beq, bne, blez, bgtz and their likely forms */
	case 0x05:
	case 0x06:
	case 0x07:
	case 0x14:
	case 0x15:
	case 0x16:
	case 0x17:
		branch(i, addr, f.imm,
		       f.op == 4 && f.rs == f.rt ? ARCH_FLOW_JUMP : ARCH_FLOW_BRANCH);
		break;
	case 0x09: /* addiu, daddiu */
	case 0x19:
		add_immediate(i, &f);
		break;
	case 0x08:
	case 0x0a:
	case 0x0b:
	case 0x0c:
	case 0x0d:
	case 0x0e:
	case 0x0f:
	case 0x18:
		immediate(i, &f);
		break;
	case 0x11: /* bc1f, bc1t; mfc1 and so on */
		if (f.rs == 8)
			branch(i, addr, f.imm, ARCH_FLOW_BRANCH);
		else if (f.rs < 4)
			i->writes = 1u << f.rt;
		break;
	case 0x1c:
		i->writes = 1u << f.rd;
		break;
	case 0x1f: /* ext, ins, rdhwr; others */
		i->writes = f.funct < 8 || f.funct == 0x3b ? 1u << f.rt : 1u << f.rd;
		break;
	case 0x37: /* ld */
		if (f.rs == SP) {
			i->loads = 1u << f.rt;
			i->load_at = f.imm;
		}
		i->writes = 1u << f.rt;
		break;
	case 0x3f: /* sd */
		if (f.rs == SP) {
			i->saves = 1u << f.rt;
			i->save_at = f.imm;
		}
		break;
	default:
		if (loads_register(f.op))
			i->writes = 1u << f.rt;
	}
	i->writes &= ~(1u << ZERO | 1u << SP);
	return true;
}
