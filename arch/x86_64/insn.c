/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One instruction, as far as patching cares; decoded by capstone. */
#include <capstone/capstone.h>
#include "arch/x86_64/x86_64.h"

static bool in_group(csh handle, const cs_insn *i, unsigned int group)
{
	return cs_insn_group(handle, i, group);
}

static bool pc_relative_operand(const cs_x86 *x, const cs_insn *i, uint64_t *target)
{
	for (uint8_t k = 0; k < x->op_count; k++) {
		if (x->operands[k].type == X86_OP_MEM && x->operands[k].mem.base == X86_REG_RIP) {
			*target = i->address + i->size + (uint64_t)x->operands[k].mem.disp;
			return true;
		}
	}
	return false;
}

static void classify(csh handle, const cs_insn *i, struct arch_insn *out)
{
	const cs_x86 *x = &i->detail->x86;
	bool immediate = x->op_count == 1 && x->operands[0].type == X86_OP_IMM;

	out->kind = ARCH_INSN_PLAIN;
	out->length = (uint8_t)i->size;
	out->has_target = false;
	out->target = 0;
	if (i->id == X86_INS_ENDBR64) {
		out->kind = ARCH_INSN_LANDING_PAD;
	} else if (i->id == X86_INS_INT3 || i->id == X86_INS_UD2 || i->id == X86_INS_HLT) {
		out->kind = ARCH_INSN_TRAP;
	} else if (i->id == X86_INS_SYSCALL || i->id == X86_INS_SYSENTER || i->id == X86_INS_INT) {
		out->kind = ARCH_INSN_SYSCALL;
	} else if (in_group(handle, i, CS_GRP_RET) || in_group(handle, i, CS_GRP_IRET)) {
		out->kind = ARCH_INSN_RETURN;
	} else if (in_group(handle, i, CS_GRP_CALL) || in_group(handle, i, CS_GRP_JUMP) ||
		   i->id == X86_INS_LOOP || i->id == X86_INS_LOOPE || i->id == X86_INS_LOOPNE) {
		if (!immediate)
			out->kind = ARCH_INSN_INDIRECT;
		else if (in_group(handle, i, CS_GRP_CALL))
			out->kind = ARCH_INSN_CALL;
		else
			out->kind = i->id == X86_INS_JMP ? ARCH_INSN_JUMP : ARCH_INSN_COND_JUMP;
		if (immediate) {
			out->has_target = true;
			out->target = (uint64_t)x->operands[0].imm;
		} else {
			out->has_target = pc_relative_operand(x, i, &out->target);
		}
	} else if (pc_relative_operand(x, i, &out->target)) {
		out->kind = ARCH_INSN_PC_RELATIVE;
		out->has_target = true;
	}
}

bool x86_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	bool done = false;
	cs_insn *i;
	csh handle;

	/* Some versions of capstone 4 do not know it. */
	if (size >= sizeof(endbr64) && code[0] == endbr64[0] && code[1] == endbr64[1] &&
	    code[2] == endbr64[2] && code[3] == endbr64[3]) {
		*insn = (struct arch_insn){.kind = ARCH_INSN_LANDING_PAD, .length = 4};
		return true;
	}
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	i = cs_malloc(handle);
	if (i && cs_disasm_iter(handle, &code, &size, &addr, i)) {
		classify(handle, i, insn);
		done = true;
	}
	if (i)
		cs_free(i, 1);
	cs_close(&handle);
	return done;
}
