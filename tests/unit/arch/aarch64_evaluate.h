/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Evaluates some AArch64 instructions as capstone decodes them: an independent check of
 * arch/aarch64.  Code of one or two instructions and its relocated copy must have the same trace
 * and end at the same address.
 */
#ifndef TESTS_UNIT_ARCH_AARCH64_EVALUATE_H
#define TESTS_UNIT_ARCH_AARCH64_EVALUATE_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct eval {
	csh handle;
	const uint8_t *code;
	size_t size;
	uint64_t at; /* of code[0] */
	uint64_t pc;
	bool taken;	/* result of all conditions */
	uint64_t x[31]; /* constants that were loaded */
	char trace[400];
};

static bool eval_branches(const cs_insn *i)
{
	static const char *const name[] = {"cbz", "cbnz", "tbz", "tbnz"};

	for (size_t k = 0; k < sizeof(name) / sizeof(name[0]); k++) {
		if (!strcmp(i->mnemonic, name[k]))
			return true;
	}
	return !strncmp(i->mnemonic, "b.", 2);
}

static int eval_reg(const cs_insn *i, int k)
{
	arm64_reg r = i->detail->arm64.operands[k].reg;

	if (r == ARM64_REG_X29 || r == ARM64_REG_X30)
		return r == ARM64_REG_X29 ? 29 : 30;
	return r >= ARM64_REG_X0 && r <= ARM64_REG_X28 ? (int)(r - ARM64_REG_X0) : -1;
}

static void eval_note(struct eval *e, const char *what, const char *operand, uint64_t value)
{
	size_t n = strlen(e->trace);

	snprintf(e->trace + n, sizeof(e->trace) - n, "%s %s %llx; ", what, operand,
		 (unsigned long long)value);
}

/* Evaluates a load of @i's first operand from @addr: a constant of the copy, or other memory. */
static void eval_load(struct eval *e, const cs_insn *i, uint64_t addr)
{
	int reg = eval_reg(i, 0);
	char to[32] = "";

	if (addr - e->at < e->size && reg >= 0) {
		memcpy(&e->x[reg], e->code + (addr - e->at), sizeof(e->x[reg]));
		if (reg != 17)
			eval_note(e, "set",
				  cs_reg_name(e->handle, i->detail->arm64.operands[0].reg),
				  e->x[reg]);
		return;
	}
	snprintf(to, sizeof(to), "%.*s", (int)strcspn(i->op_str, ","), i->op_str);
	eval_note(e, i->mnemonic, to, addr);
}

static void eval_step(struct eval *e)
{
	const cs_arm64_op *op;
	uint64_t next = e->pc + 4;
	cs_insn *i;

	if (cs_disasm(e->handle, e->code + (e->pc - e->at), 4, e->pc, 1, &i) != 1) {
		eval_note(e, "unknown", "", *(const uint32_t *)(e->code + (e->pc - e->at)));
		e->pc = next;
		return;
	}
	op = i->detail->arm64.operands;
	if (!strcmp(i->mnemonic, "b")) {
		next = (uint64_t)op[0].imm;
	} else if (eval_branches(i)) {
		if (e->taken)
			next = (uint64_t)op[i->detail->arm64.op_count - 1].imm;
	} else if (!strcmp(i->mnemonic, "adr") || !strcmp(i->mnemonic, "adrp")) {
		eval_note(e, "set", cs_reg_name(e->handle, op[0].reg), (uint64_t)op[1].imm);
	} else if ((!strncmp(i->mnemonic, "ldr", 3) || !strcmp(i->mnemonic, "prfm")) &&
		   op[1].type == ARM64_OP_IMM) {
		eval_load(e, i, (uint64_t)op[1].imm);
	} else if ((!strncmp(i->mnemonic, "ldr", 3) || !strcmp(i->mnemonic, "prfm")) &&
		   op[1].type == ARM64_OP_MEM && op[1].mem.base == ARM64_REG_X17 && e->x[17]) {
		eval_load(e, i, e->x[17]);
	} else if (!strcmp(i->mnemonic, "ret") && i->detail->arm64.op_count == 1 &&
		   op[0].reg == ARM64_REG_X17) {
		next = e->x[17];
	} else if (!strcmp(i->mnemonic, "ret")) {
		eval_note(e, "ret", i->op_str, 0);
		next = 0;
	} else {
		eval_note(e, i->mnemonic, i->op_str, 0);
	}
	cs_free(i, 1);
	e->pc = next;
}

/* Evaluates from @from until the address is outside the code. */
static void eval_run(struct eval *e, uint64_t from)
{
	e->pc = from;
	e->trace[0] = 0;
	memset(e->x, 0, sizeof(e->x));
	for (int steps = 0; steps < 20 && e->pc - e->at < e->size; steps++)
		eval_step(e);
}

static void eval_open(struct eval *e)
{
	memset(e, 0, sizeof(*e));
	cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &e->handle);
	cs_option(e->handle, CS_OPT_DETAIL, CS_OPT_ON);
}

/* Return: whether the window of @p, in the function @code at @addr, does what its copy at @copy
 * does.
 */
static bool eval_same(const uint8_t *code, uint64_t addr, const struct arch_patch *p, uint64_t copy)
{
	struct eval e, c;
	bool same = true;

	eval_open(&e);
	eval_open(&c);
	e.code = code;
	e.size = p->addr + p->length - addr;
	e.at = addr;
	c.code = p->relocated;
	c.size = p->relocated_length;
	c.at = copy;
	for (int taken = 0; taken < 2; taken++) {
		e.taken = c.taken = taken;
		eval_run(&e, p->addr);
		eval_run(&c, copy);
		if (e.pc != c.pc || strcmp(e.trace, c.trace)) {
			printf("# at %llx: \"%s\" to %llx, copy: \"%s\" to %llx\n",
			       (unsigned long long)p->addr, e.trace, (unsigned long long)e.pc,
			       c.trace, (unsigned long long)c.pc);
			same = false;
		}
	}
	cs_close(&e.handle);
	cs_close(&c.handle);
	return same;
}

#endif
