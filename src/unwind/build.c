/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/build.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "lib/by_number.h"
#include "unwind/cfi.h"
#include "unwind/elf_arch.h"
#include "unwind/elf_bytes.h"
#include "unwind/golang.h"
#include "unwind/prologues.h"
#include "unwind/sigtramp.h"
#include "unwind/starts.h"
#include "unwind/untabled.h"

struct building {
	struct unwind_table *table;
	struct rule_set *set;
	uint64_t limit; /* start of the next function: broken CFI can overlap */
};

static int push_row(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	struct building *b = ctx;

	return pc < b->limit ? unwind_table_add(b->table, pc, rule ? rule_set_add(b->set, rule) : 0)
			     : 0;
}

static int rows_of_cfi(const struct cfi *cfi, struct rule_set *set, struct unwind_table *t)
{
	struct building b = {.table = t, .set = set};
	struct cfi_fdes fdes = {0};
	int err = cfi_fdes(cfi, &fdes);

	for (size_t i = 0; i < fdes.list.n && !err; i++) {
		const struct cfi_fde *fde = &fdes.list.at[i];

		b.limit = i + 1 < fdes.list.n ? fde[1].start : UINT64_MAX;
		err = cfi_rows(cfi, fde, push_row, &b);
		if (!err)
			err = unwind_table_add(t, fde->end < b.limit ? fde->end : b.limit, 0);
	}
	vec_free(&fdes.list);
	return err;
}

/* Functions where programs and threads begin, for which libcs have no CFI.  Those after
 * OUTERMOST_ASM are musl's C start code, which flow.c can analyze. */
static const char *const outermost[] = {"_start",
					"__start",
					"__clone",
					"clone",
					"_start_c",
					"libc_start_main_stage2",
					"__libc_start_main",
					"start",
					"start_c11"};

#define OUTERMOST_ASM 4

#define START_SIZE 64u

struct gaps {
	Elf *elf;
	const struct arch *arch;
	struct unwind_table *table;
	uint64_t mask;	  /* removes the mode bit from a function's address */
	VEC(uint64_t) at; /* pairs: start, end */
};

static int push_gap(struct gaps *gaps, uint64_t start, uint64_t size)
{
	if (unwind_table_find(gaps->table, start))
		return 0;
	return vec_push(&gaps->at, start) || vec_push(&gaps->at, start + size) ? -ENOMEM : 0;
}

/* Return: the size of start code whose symbol has none.  The longest is glibc's __start on MIPS. */
static uint64_t start_size(const struct arch *arch)
{
	return arch->elf_machine == EM_MIPS ? 80 : START_SIZE;
}

/* On ARM and MIPS the code where threads begin follows clone and ends with the exit system call. */
static int push_thread_start(struct gaps *gaps, uint64_t start)
{
	const struct arch *arch = gaps->arch;
	unsigned length = arch->syscall.insn_length;
	struct bytes b = elf_bytes(gaps->elf, arch, start, START_SIZE);

	for (uint64_t at = 0; (size_t)(b.end - b.p) >= length; at += length, b.p += length) {
		if (!memcmp(b.p, arch->emergency.syscall_return.bytes, length))
			return push_gap(gaps, start, at + length);
	}
	return 0;
}

static int push_named(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct gaps *gaps = ctx;

	size_t n = sizeof(outermost) / sizeof(outermost[0]);

	if (gaps->arch->unwind.frame_insn)
		n = OUTERMOST_ASM;
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(name, outermost[i]) &&
		    push_gap(gaps, sym->st_value & gaps->mask,
			     sym->st_size ? sym->st_size : start_size(gaps->arch)))
			return -ENOMEM;
	}
	if ((gaps->arch->elf_machine == EM_MIPS || gaps->arch->elf_machine == EM_ARM) &&
	    !strcmp(name, "__clone"))
		return push_thread_start(gaps, (sym->st_value & gaps->mask) + sym->st_size);
	return 0;
}

static int fill_gaps(Elf *elf, const struct arch *arch, struct unwind_table *t)
{
	struct unwind_table extra = {0};
	struct gaps gaps = {.elf = elf,
			    .arch = arch,
			    .table = t,
			    .mask = arch->elf_machine == EM_ARM ? ~1ull : UINT64_MAX};
	int err = starts_each_function(elf, push_named, &gaps);
	GElf_Ehdr eh;

	if (!err && gelf_getehdr(elf, &eh) && eh.e_entry)
		err = push_gap(&gaps, eh.e_entry & gaps.mask, start_size(arch));

	if (!err && gaps.at.n) {
		qsort(gaps.at.at, gaps.at.n / 2, 2 * sizeof(uint64_t), by_number);
		for (size_t i = 0; i < gaps.at.n && !err; i += 2) {
			if (extra.n && gaps.at.at[i] < extra.pc[extra.n - 1])
				continue;
			err = unwind_table_add(&extra, gaps.at.at[i], UW_RULE_OUTERMOST);
			if (!err)
				err = unwind_table_add(&extra, gaps.at.at[i + 1], 0);
		}
		if (!err)
			err = unwind_table_merge(t, &extra);
	}
	vec_free(&gaps.at);
	unwind_table_free(&extra);
	return err;
}

/* Adds rows from .debug_frame for code that .eh_frame does not cover. */
static int add_debug_frame(Elf *elf, const struct arch *arch, struct rule_set *set,
			   struct unwind_table *t)
{
	struct unwind_table extra = {0};
	struct cfi cfi;
	int err = 0;

	if (cfi_open(elf, arch, true, &cfi)) {
		err = rows_of_cfi(&cfi, set, &extra);
		if (!err && extra.n)
			err = unwind_table_merge(t, &extra);
	}
	unwind_table_free(&extra);
	return err;
}

typedef int missing_rows_fn(Elf *elf, const struct arch *arch, const struct unwind_table *known,
			    struct rule_set *set, struct unwind_table *t);

/* Adds the rows that @rows finds for code that has none so far. */
static int add_missing(Elf *elf, const struct arch *arch, struct rule_set *set,
		       struct unwind_table *t, missing_rows_fn *rows)
{
	struct unwind_table extra = {0};
	int err = rows(elf, arch, t, set, &extra);

	if (!err && extra.n)
		err = unwind_table_merge(t, &extra);
	unwind_table_free(&extra);
	return err;
}

/* Adds rows that replace existing ones: for signal trampolines, since the vDSO's call frame
 * information serves debuggers' views, and for Go's runtime, whose information ignores stack
 * switches. */
static int put_over(Elf *elf, const struct arch *arch, struct rule_set *set, struct unwind_table *t)
{
	struct unwind_table first = {0}, go = {0}, rest = *t;
	int err = sigtramp_rows_of_elf(elf, arch, set, &first);

	if (!err)
		err = golang_rows(elf, arch, set, &go);
	if (!err && go.n)
		err = unwind_table_merge(&first, &go);
	unwind_table_free(&go);
	if (!err && first.n)
		err = unwind_table_merge(&first, &rest);
	if (err || !first.n) {
		unwind_table_free(&first);
		return err;
	}
	unwind_table_free(&rest);
	*t = first;
	return 0;
}

int unwind_table_build(Elf *elf, Elf *debug, struct rule_set *set, struct unwind_table *table)
{
	const struct arch *arch = elf_arch(elf);
	struct cfi cfi;
	int err = 0;

	memset(table, 0, sizeof(*table));
	if (!arch)
		return -EINVAL;
	if (cfi_open(elf, arch, false, &cfi))
		err = rows_of_cfi(&cfi, set, table);
	if (!err)
		err = add_debug_frame(debug ? debug : elf, arch, set, table);
	if (!err)
		err = fill_gaps(elf, arch, table);
	if (!err)
		err = add_missing(elf, arch, set, table, untabled_rows);
	if (!err)
		err = add_missing(elf, arch, set, table, prologue_rows);
	if (!err)
		err = put_over(elf, arch, set, table);
	if (err)
		unwind_table_free(table);
	return err;
}
