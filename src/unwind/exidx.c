/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/exidx.h"

#include <gelf.h>
#include <string.h>
#include "unwind/bytes.h"
#include "unwind/cfi.h"
#include "unwind/elf_bytes.h"
#include "unwind/rule_set.h"

enum { ENTRY = 8, CANTUNWIND = 1, SP = 13, LR = 14, PC = 15, MAX_WORDS = 256 };

/* ---------------------------------------------------------------- opcodes -- */

/* State of the unwinding machine.  The virtual stack pointer, from which registers are popped, is
 * @base + @at. */
struct machine {
	int base;
	int64_t at;
	uint32_t popped; /* bit r: register r, from @from[r] */
	int64_t from[16];
	bool refused, finished;
};

static void pop(struct machine *m, unsigned first, uint32_t mask)
{
	for (unsigned r = first; mask; r++, mask >>= 1) {
		if (!(mask & 1))
			continue;
		m->popped |= 1u << r;
		m->from[r] = m->at;
		m->at += 4;
	}
}

static void pop_range(struct machine *m, unsigned op)
{
	pop(m, 4, (1u << ((op & 7) + 1)) - 1);
	if (op & 8)
		pop(m, LR, 1);
}

/* 1001nnnn: a new base register.  Refused if registers were popped before, since their places are
 * relative to the old one. */
static void take_base(struct machine *m, unsigned reg)
{
	if (reg == SP || reg == PC || m->popped)
		m->refused = true;
	m->base = (int)reg;
	m->at = 0;
}

/* 1011xxxx */
static void special(struct machine *m, unsigned op, struct bytes *b)
{
	uint64_t operand;

	switch (op) {
	case 0xb0:
		m->finished = true;
		return;
	case 0xb1:
		operand = bytes_take(b, 1);
		m->refused |= !operand || operand > 0xf;
		pop(m, 0, (uint32_t)operand & 0xf);
		return;
	case 0xb2:
		m->at += 0x204 + (int64_t)((bytes_uleb(b) & 0xffffff) << 2);
		return;
	case 0xb3: /* VFP registers saved by FSTMFDX */
		m->at += (int64_t)((bytes_take(b, 1) & 0xf) + 1) * 8 + 4;
		return;
	case 0xb4: /* the return address's authentication code */
		m->at += 4;
		return;
	}
	if (op < 0xb8)
		m->refused = true;
	m->at += (op & 7) * 8 + 12;
}

/* 11xxxxxx: registers that rules do not track */
static void coprocessor(struct machine *m, unsigned op, struct bytes *b)
{
	if (op < 0xc6 || (op >= 0xd0 && op < 0xd8))
		m->at += (op & 7) * 8 + 8;
	else if (op == 0xc6 || op == 0xc8 || op == 0xc9)
		m->at += (int64_t)((bytes_take(b, 1) & 0xf) + 1) * 8;
	else if (op == 0xc7)
		m->at += 4 * __builtin_popcount(bytes_take(b, 1) & 0xf);
	else
		m->refused = true;
}

static void step(struct machine *m, struct bytes *b)
{
	unsigned op = (unsigned)bytes_take(b, 1), mask;

	if (op < 0x40) {
		m->at += (op & 0x3f) * 4 + 4;
	} else if (op < 0x80) {
		m->at -= (op & 0x3f) * 4 + 4;
	} else if (op < 0x90) {
		mask = (op & 0xf) << 8 | (unsigned)bytes_take(b, 1);
		/* 0: refuse to unwind.  A rule cannot express a popped stack pointer. */
		m->refused |= !mask || mask >> (SP - 4) & 1;
		pop(m, 4, mask);
	} else if (op < 0xa0) {
		take_base(m, op & 0xf);
	} else if (op < 0xb0) {
		pop_range(m, op);
	} else if (op < 0xc0) {
		special(m, op, b);
	} else {
		coprocessor(m, op, b);
	}
}

static bool put_column(struct uw_full *f, const struct machine *m, unsigned reg, int column)
{
	int64_t off = m->from[reg] - m->at;

	f->where[column] = UW_AT_CFA;
	f->off[column] = (int32_t)off;
	return off == (int32_t)off;
}

bool exidx_rule(const uint8_t *code, size_t n, const struct arch *arch, struct uw_full *rule)
{
	struct bytes b = {.p = code, .end = code + n};
	struct machine m = {.base = SP};
	int base;

	while (b.p < b.end && !m.finished && !m.refused)
		step(&m, &b);
	base = cfi_column(arch, (uint64_t)m.base);
	if (m.refused || b.lacking || base < 0 || m.at != (int32_t)m.at)
		return false;
	*rule = uw_entry_rule(arch);
	rule->cfa_reg = (uint8_t)base;
	rule->cfa_off = (int32_t)m.at;
	for (unsigned r = 4; r < SP; r++) {
		int column = cfi_column(arch, r);

		if (m.popped >> r & 1 && column >= 0 && !put_column(rule, &m, r, column))
			return false;
	}
	if (m.popped >> PC & 1)
		return put_column(rule, &m, PC, UW_REG_PC);
	return !(m.popped >> LR & 1) || put_column(rule, &m, LR, UW_REG_PC);
}

/* ---------------------------------------------------------------- tables -- */

struct exidx_image {
	Elf *elf;
	const struct arch *arch;
};

/* Return: the address that the 31-bit offset @word, stored at @at, refers to. */
static uint64_t prel31(uint64_t word, uint64_t at)
{
	return (uint32_t)((int64_t)at + ((int32_t)((uint32_t)word << 1) >> 1));
}

/* Translates the @first low bytes of @word and @more further words of opcodes, most significant
 * bytes first. */
static bool rule_of_words(const struct exidx_image *in, uint32_t word, unsigned first,
			  struct bytes *b, unsigned more, struct uw_full *rule)
{
	uint8_t code[4 + 4 * MAX_WORDS];
	size_t n = 0;

	while (first)
		code[n++] = (uint8_t)(word >> 8 * --first);
	for (; more; more--) {
		word = (uint32_t)bytes_take(b, 4);
		for (int shift = 24; shift >= 0; shift -= 8)
			code[n++] = (uint8_t)(word >> shift);
	}
	return !b->lacking && exidx_rule(code, n, in->arch, rule);
}

/* Translates a table entry: the three compact models (personality routines 0 to 2), or the generic
 * model in the form of all GNU personality routines, which begins with a number of words and three
 * opcodes. */
static bool rule_of_table(const struct exidx_image *in, uint64_t at, struct uw_full *rule)
{
	struct bytes b = elf_bytes(in->elf, in->arch, at, 8 + 4 * MAX_WORDS);
	uint32_t word = (uint32_t)bytes_take(&b, 4);

	if (!(word >> 31)) {
		word = (uint32_t)bytes_take(&b, 4);
		return rule_of_words(in, word, 3, &b, word >> 24, rule);
	}
	switch (word >> 24) {
	case 0x80:
		return rule_of_words(in, word, 3, &b, 0, rule);
	case 0x81:
	case 0x82:
		return rule_of_words(in, word, 2, &b, word >> 16 & 0xff, rule);
	}
	return false;
}

static int each_entry(const struct exidx_image *in, uint64_t at, struct bytes b, exidx_fn *fn,
		      void *ctx)
{
	int ret = 0;

	for (; b.end - b.p >= ENTRY && !ret; at += ENTRY) {
		uint64_t start = prel31(bytes_take(&b, 4), at);
		uint32_t word = (uint32_t)bytes_take(&b, 4);
		struct uw_full rule;
		bool known;

		if (word == CANTUNWIND)
			known = false;
		else if (word >> 31)
			known = word >> 24 == 0x80 && rule_of_words(in, word, 3, &b, 0, &rule);
		else
			known = rule_of_table(in, prel31(word, at + 4), &rule);
		ret = fn(ctx, start, known ? &rule : NULL);
	}
	return ret;
}

int exidx_each(Elf *elf, const struct arch *arch, exidx_fn *fn, void *ctx)
{
	struct exidx_image in = {elf, arch};
	size_t n;

	if (arch->elf_machine != EM_ARM || elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_ARM_EXIDX)
			return each_entry(&in, ph.p_vaddr,
					  elf_bytes(elf, arch, ph.p_vaddr, ph.p_filesz), fn, ctx);
	}
	return 0;
}
