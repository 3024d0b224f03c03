/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decodes one instruction with capstone, as far as it matters for patching. */
#include <capstone/capstone.h>
#include <string.h>
#include "arch/x86_64/x86_64.h"

_Static_assert(sizeof(csh) == sizeof(size_t), "struct x86_decoder hides capstone's handle");

/* Return: the operand that is relative to the address of the next instruction, or NULL. */
static const cs_x86_op *pc_relative_operand(const cs_x86 *x)
{
	for (uint8_t k = 0; k < x->op_count; k++) {
		const cs_x86_op *op = &x->operands[k];

		if (op->type == X86_OP_MEM &&
		    (op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP))
			return op;
	}
	return NULL;
}

static bool is_trap(unsigned int id)
{
	return id == X86_INS_INT3 || id == X86_INS_INT1 || id == X86_INS_UD2 || id == X86_INS_HLT;
}

static bool is_loop(unsigned int id)
{
	return id == X86_INS_LOOP || id == X86_INS_LOOPE || id == X86_INS_LOOPNE;
}

static void classify_branch(const cs_x86 *x, const cs_insn *i, bool call, struct arch_insn *out)
{
	if (x->op_count != 1 || x->operands[0].type != X86_OP_IMM) {
		out->kind = ARCH_INSN_INDIRECT;
		return;
	}
	out->has_target = true;
	out->target = (uint64_t)x->operands[0].imm;
	if (call)
		out->kind = ARCH_INSN_CALL;
	else
		out->kind = i->id == X86_INS_JMP ? ARCH_INSN_JUMP : ARCH_INSN_COND_JUMP;
}

static void classify(csh handle, const uint8_t *code, const cs_insn *i, struct arch_insn *out,
		     uint8_t *disp_at)
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *op = pc_relative_operand(x);
	int32_t disp;

	*out = (struct arch_insn){.kind = ARCH_INSN_PLAIN, .length = (uint8_t)i->size};
	if (i->id == X86_INS_ENDBR64) {
		out->kind = ARCH_INSN_LANDING_PAD;
	} else if (is_trap(i->id)) {
		out->kind = ARCH_INSN_TRAP;
	} else if (i->id == X86_INS_SYSCALL || i->id == X86_INS_SYSENTER || i->id == X86_INS_INT) {
		out->kind = ARCH_INSN_SYSCALL;
	} else if (cs_insn_group(handle, i, CS_GRP_RET) || cs_insn_group(handle, i, CS_GRP_IRET)) {
		out->kind = ARCH_INSN_RETURN;
	} else if (cs_insn_group(handle, i, CS_GRP_CALL)) {
		classify_branch(x, i, true, out);
	} else if (cs_insn_group(handle, i, CS_GRP_JUMP) || is_loop(i->id) ||
		   i->id == X86_INS_XBEGIN) {
		classify_branch(x, i, false, out);
	} else if (op) {
		out->kind = ARCH_INSN_PC_RELATIVE;
	}
	if (!op)
		return;
	out->has_target = true;
	out->target = i->address + i->size + (uint64_t)op->mem.disp;
	if (op->mem.base == X86_REG_RIP && x->encoding.disp_offset &&
	    x->encoding.disp_offset + sizeof(disp) <= i->size) {
		memcpy(&disp, code + x->encoding.disp_offset, sizeof(disp));
		if (disp == op->mem.disp)
			*disp_at = x->encoding.disp_offset;
	}
}

bool x86_decoder_open(struct x86_decoder *d)
{
	csh handle;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->handle = handle;
	d->insn = cs_malloc(handle);
	if (!d->insn)
		cs_close(&handle);
	return d->insn;
}

void x86_decoder_close(struct x86_decoder *d)
{
	csh handle = d->handle;

	cs_free(d->insn, 1);
	cs_close(&handle);
}

bool x86_decode_with(const struct x86_decoder *d, const uint8_t *code, size_t size, uint64_t addr,
		     struct arch_insn *insn, uint8_t *disp_at)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *next = code;
	uint8_t ignored = 0;

	disp_at = disp_at ? disp_at : &ignored;
	*disp_at = 0;
	/* Some versions of capstone 4 cannot decode endbr64. */
	if (size >= sizeof(endbr64) && !memcmp(code, endbr64, sizeof(endbr64))) {
		*insn = (struct arch_insn){.kind = ARCH_INSN_LANDING_PAD, .length = 4};
		return true;
	}
	if (!cs_disasm_iter(d->handle, &next, &size, &addr, d->insn))
		return false;
	classify(d->handle, code, d->insn, insn, disp_at);
	return true;
}

bool x86_decode(const uint8_t *code, size_t size, uint64_t addr, struct arch_insn *insn)
{
	struct x86_decoder d;
	bool done;

	if (!x86_decoder_open(&d))
		return false;
	done = x86_decode_with(&d, code, size, addr, insn, NULL);
	x86_decoder_close(&d);
	return done;
}
