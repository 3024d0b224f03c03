/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/golang.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "lib/by_number.h"
#include "lib/vec.h"
#include "unwind/elf_bytes.h"
#include "unwind/rule_set.h"
#include "unwind/starts.h"
#include "unwind/table.h"
#include "unwind/untabled.h"

enum kind {
	BEGINS,	  /* the outermost function of a stack */
	SWITCHES, /* switches stacks; the caller's is not known */
	CALLS_C,  /* from a goroutine's stack to the thread's */
};

static const struct {
	const char *name;
	enum kind kind;
} functions[] = {{"goexit", BEGINS},	    {"mstart", BEGINS},	       {"rt0_go", BEGINS},
		 {"mcall", SWITCHES},	    {"systemstack", SWITCHES}, {"morestack", SWITCHES},
		 {"cgocallback", SWITCHES}, {"asmcgocall", CALLS_C}};

struct function {
	uint64_t addr, size;
	enum kind kind;
};

struct found {
	VEC(struct function) list;
};

/* "runtime.NAME", or "runtime.NAME.abi0". */
static bool is_named(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, "runtime.", 8) && !strncmp(symbol + 8, name, n) &&
	       (!symbol[8 + n] || !strcmp(symbol + 8 + n, ".abi0"));
}

static int note(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct found *found = ctx;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct function f = {sym->st_value, sym->st_size, functions[i].kind};

		if (sym->st_size && is_named(name, functions[i].name))
			return vec_push(&found->list, f);
	}
	return 0;
}

static uint32_t lost_rule(struct rule_set *set)
{
	struct uw_full f = {.cfa_kind = UW_CFA_LOST, .cfa_reg = UW_REG_SP};

	return rule_set_add(set, &f);
}

static struct uw_full caller_rule(enum uw_cfa kind, uint8_t offset)
{
	struct uw_full f = {.cfa_kind = kind, .cfa_reg = UW_REG_SP, .cfa_off = offset};

	for (int i = 0; i < UW_MAX_REGS; i++)
		f.where[i] = UW_UNDEFINED;
	/* The saved value is the stack pointer at entry, where the return address is. */
	f.where[UW_REG_PC] = UW_AT_CFA;
	f.where[UW_REG_SP] = UW_CFA_PLUS;
	f.off[UW_REG_SP] = 8;
	f.where[UW_REG_FP] = UW_SAME;
	return f;
}

/*
 * Finds the rule at the return address of a call of C, from the instructions that restore the
 * stack pointer:
 *
 *	mov 0x30(%rsp),%rdi; mov 0x8(%rdi),%rsi; sub 0x28(%rsp),%rsi	a goroutine's stack
 *	mov 0x28(%rsp),%rsi; mov %rsi,%rsp				the same stack
 */
static bool rule_behind(struct bytes b, struct uw_full *rule)
{
	const uint8_t *p = b.p;
	size_t n = (size_t)(b.end - b.p);

	if (n >= 14 && !memcmp(p, "\x48\x8b\x7c\x24", 4) && !memcmp(p + 5, "\x48\x8b\x77\x08", 4) &&
	    !memcmp(p + 9, "\x48\x2b\x74\x24", 4) && p[4] == p[13] + 8) {
		*rule = caller_rule(UW_CFA_GOROUTINE, p[13]);
		rule->flags = UW_SWITCH;
		return true;
	}
	if (n >= 8 && !memcmp(p, "\x48\x8b\x74\x24", 4) && !memcmp(p + 5, "\x48\x89\xf4", 3)) {
		*rule = caller_rule(UW_CFA_DEREF, p[4]);
		return true;
	}
	return false;
}

/* Adds rows for asmcgocall: one rule at the return address of each call *%rax. */
static int put_calls(Elf *elf, const struct arch *arch, const struct function *f,
		     struct rule_set *set, struct unwind_table *t)
{
	struct bytes b = elf_bytes(elf, arch, f->addr, f->size);
	const uint8_t *begin = b.p;
	uint32_t lost = lost_rule(set);
	bool calls = false;
	int err = 0;

	for (; b.end - b.p >= 2 && !err; b.p++) {
		uint64_t behind = f->addr + (uint64_t)(b.p - begin) + 2;
		struct bytes next = b;
		struct uw_full rule;
		uint32_t id = lost;

		if (memcmp(b.p, "\xff\xd0", 2))
			continue;
		next.p += 2;
		if (rule_behind(next, &rule))
			id = rule_set_add(set, &rule);
		err = calls ? 0 : unwind_table_add(t, f->addr, lost);
		if (!err)
			err = unwind_table_add(t, behind - 1, id);
		if (!err)
			err = unwind_table_add(t, behind, lost);
		calls = true;
	}
	return err || !calls ? err : unwind_table_add(t, f->addr + f->size, 0);
}

static int put_function(Elf *elf, const struct arch *arch, const struct function *f,
			struct rule_set *set, struct unwind_table *t)
{
	int err;

	if (f->kind == CALLS_C && arch->elf_machine == EM_X86_64)
		return put_calls(elf, arch, f, set, t);
	err = unwind_table_add(t, f->addr, f->kind == BEGINS ? UW_RULE_OUTERMOST : lost_rule(set));
	return err ? err : unwind_table_add(t, f->addr + f->size, 0);
}

int golang_rows(Elf *elf, const struct arch *arch, struct rule_set *set, struct unwind_table *t)
{
	struct found found = {0};
	int err = starts_each_function(elf, note, &found);

	if (!err && found.list.n)
		vec_sort(&found.list, by_number);
	vec_for_each (&found.list, f) {
		if (!err)
			err = put_function(elf, arch, f, set, t);
	}
	vec_free(&found.list);
	return err;
}
