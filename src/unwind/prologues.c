/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/prologues.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include "lib/vec.h"
#include "unwind/rule_set.h"
#include "unwind/section.h"
#include "unwind/starts.h"
#include "unwind/table.h"
#include "unwind/untabled.h"

#define LEAST_GAP 16u /* bytes; smaller gaps are padding */

/* Code after the padding that follows a jump: the same function or the next one. */
struct behind {
	uint64_t addr, target;
};

struct section {
	const struct arch *arch;
	const struct unwind_table *known;
	const uint8_t *code;
	uint64_t addr, end;
	uint8_t *starts; /* bit map: one bit per address */
	VEC(uint64_t) frames;
	VEC(struct behind) behind;
	int err;
};

static bool is_start(const struct section *s, uint64_t addr)
{
	uint64_t i = addr - s->addr;

	return s->starts[i / 8] >> i % 8 & 1;
}

static void set_start(struct section *s, uint64_t addr)
{
	uint64_t i = addr - s->addr;

	if (addr >= s->addr && addr < s->end)
		s->starts[i / 8] |= (uint8_t)(1u << i % 8);
}

static void note(void *ctx, enum arch_mark mark, uint64_t addr, uint64_t target)
{
	struct section *s = ctx;
	struct behind behind = {addr, target};
	int err = 0;

	if (mark == ARCH_MARK_START)
		set_start(s, addr);
	else if (mark == ARCH_MARK_BEHIND_JUMP)
		err = vec_push(&s->behind, behind);
	else if (!unwind_table_find(s->known, addr))
		err = vec_push(&s->frames, addr);
	s->err = s->err ? s->err : err;
}

static void note_any(void *ctx, enum arch_mark mark, uint64_t addr, uint64_t target)
{
	(void)addr;
	(void)target;
	if (mark == ARCH_MARK_FRAME)
		*(bool *)ctx = true;
}

static bool makes_frames(const struct section *s, uint64_t from, uint64_t to)
{
	bool found = false;

	from = from < s->addr ? s->addr : from;
	to = to > s->end ? s->end : to;
	if (to > from && to - from >= LEAST_GAP)
		s->arch->unwind.find_frames(s->code + (from - s->addr), to - from, from, note_any,
					    &found);
	return found;
}

/* Return: whether code without rules has any function prologues. */
static bool has_frames(const struct section *s)
{
	const struct unwind_table *t = s->known;

	if (makes_frames(s, s->addr, t->n ? t->pc[0] : s->end))
		return true;
	for (uint32_t i = 0; i < t->n; i++) {
		if (!t->rule[i] && makes_frames(s, t->pc[i], i + 1 < t->n ? t->pc[i + 1] : s->end))
			return true;
	}
	return false;
}

static int note_symbol(void *ctx, const char *name, const GElf_Sym *sym)
{
	(void)name;
	set_start(ctx, sym->st_value);
	set_start(ctx, sym->st_value + sym->st_size);
	return 0;
}

struct uw_full prologue_rule(const struct arch *arch)
{
	struct uw_full f = {.cfa_kind = UW_CFA_REG, .cfa_reg = UW_REG_FP, .flags = UW_AT_CALLS};
	int32_t word = arch->unwind.call_push;

	for (int i = 0; i < UW_MAX_REGS; i++)
		f.where[i] = UW_UNDEFINED;
	f.cfa_off = 2 * word;
	f.where[UW_REG_SP] = UW_SAME;
	f.where[UW_REG_FP] = f.where[UW_REG_PC] = UW_AT_CFA;
	f.off[UW_REG_FP] = -2 * word;
	f.off[UW_REG_PC] = -word;
	return f;
}

static int put_rows(const struct section *s, struct rule_set *set, struct unwind_table *t)
{
	struct uw_full full = prologue_rule(s->arch);
	uint32_t rule = rule_set_add(set, &full);
	uint64_t end = s->addr;
	int err = 0;

	vec_for_each (&s->frames, frame) {
		/* It is in the same function */
		if (*frame < end || err)
			continue;
		for (end = *frame; end < s->end && !is_start(s, end); end++)
			;
		err = unwind_table_add(t, *frame, rule);
		if (!err)
			err = unwind_table_add(t, end, 0);
	}
	return err;
}

static int scan_section(struct section *s, Elf *elf, struct rule_set *set, struct unwind_table *t)
{
	size_t size = s->end - s->addr;

	if (!has_frames(s))
		return 0;
	s->starts = calloc(size / 8 + 1, 1);
	if (!s->starts)
		return -ENOMEM;
	starts_each_function(elf, note_symbol, s);
	s->arch->unwind.find_frames(s->code, size, s->addr, note, s);
	vec_for_each (&s->behind, b) {
		if (is_start(s, b->target))
			set_start(s, b->addr);
	}
	if (!s->err)
		s->err = put_rows(s, set, t);
	vec_free(&s->behind);
	vec_free(&s->frames);
	free(s->starts);
	return s->err;
}

int prologue_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t)
{
	Elf_Scn *scn = NULL;
	uint64_t last = 0;
	int err = 0;

	if (!arch->unwind.find_frames)
		return 0;
	while ((scn = elf_nextscn(elf, scn)) && !err) {
		struct section s = {.arch = arch, .known = known};
		GElf_Shdr sh;

		if (!section_is_code(scn, &sh, &s.code) || sh.sh_addr < last)
			continue;
		s.addr = sh.sh_addr;
		s.end = last = sh.sh_addr + sh.sh_size;
		err = scan_section(&s, elf, set, t);
	}
	return err;
}
