/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds an unwind table from call frame information and the other sources. */
#include "unwind/table.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "lib/vec.h"
#include "unwind/cfi.h"
#include "unwind/golang.h"
#include "unwind/image.h"
#include "unwind/prologues.h"
#include "unwind/sigtramp.h"
#include "unwind/starts.h"
#include "unwind/untabled.h"

int table_add_row(struct unwind_table *t, uint64_t pc, uint32_t rule)
{
	if (t->n && t->pc[t->n - 1] == pc) {
		t->rule[t->n - 1] = (uint16_t)rule;
		if (t->n > 1 && t->rule[t->n - 2] == rule)
			t->n--;
		return 0;
	}
	/* Addresses in a broken file can wrap around or decrease. */
	if (t->n && (t->rule[t->n - 1] == rule || pc < t->pc[t->n - 1]))
		return 0;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 4096;
		uint64_t *p = reallocarray(t->pc, cap, sizeof(*p));
		uint16_t *r;

		if (!p)
			return -ENOMEM;
		t->pc = p;
		r = reallocarray(t->rule, cap, sizeof(*r));
		if (!r)
			return -ENOMEM;
		t->rule = r;
		t->cap = cap;
	}
	t->pc[t->n] = pc;
	t->rule[t->n++] = (uint16_t)rule;
	return 0;
}

struct building {
	struct unwind_table *table;
	struct rule_set *set;
	uint64_t limit; /* start of the next function: broken CFI can overlap */
};

static int push_row(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	struct building *b = ctx;

	return pc < b->limit ? table_add_row(b->table, pc, rule ? rule_set_add(b->set, rule) : 0)
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
			err = table_add_row(t, fde->end < b.limit ? fde->end : b.limit, 0);
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
	unsigned length = arch->syscall_insn_length;
	struct bytes b = image_bytes(gaps->elf, arch, start, START_SIZE);

	for (uint64_t at = 0; (size_t)(b.end - b.p) >= length; at += length, b.p += length) {
		if (!memcmp(b.p, arch->syscall_return.bytes, length))
			return push_gap(gaps, start, at + length);
	}
	return 0;
}

static int push_named(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct gaps *gaps = ctx;

	size_t n = sizeof(outermost) / sizeof(outermost[0]);

	if (gaps->arch->frame_insn)
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

int table_merge(struct unwind_table *a, const struct unwind_table *b)
{
	struct unwind_table out = {0};
	uint32_t i = 0, j = 0;
	int err = 0;

	while ((i < a->n || j < b->n) && !err) {
		uint64_t pc;
		uint16_t rule;

		if (j == b->n || (i < a->n && a->pc[i] <= b->pc[j]))
			pc = a->pc[i++];
		else
			pc = b->pc[j++];
		rule = unwind_table_find(a, pc);
		err = table_add_row(&out, pc, rule ? rule : unwind_table_find(b, pc));
	}
	if (err) {
		unwind_table_free(&out);
		return err;
	}
	unwind_table_free(a);
	*a = out;
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
		qsort(gaps.at.at, gaps.at.n / 2, 2 * sizeof(uint64_t), starts_by_value);
		for (size_t i = 0; i < gaps.at.n && !err; i += 2) {
			if (extra.n && gaps.at.at[i] < extra.pc[extra.n - 1])
				continue;
			err = table_add_row(&extra, gaps.at.at[i], UW_RULE_OUTERMOST);
			if (!err)
				err = table_add_row(&extra, gaps.at.at[i + 1], 0);
		}
		if (!err)
			err = table_merge(t, &extra);
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
			err = table_merge(t, &extra);
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
		err = table_merge(t, &extra);
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
		err = table_merge(&first, &go);
	unwind_table_free(&go);
	if (!err && first.n)
		err = table_merge(&first, &rest);
	if (err || !first.n) {
		unwind_table_free(&first);
		return err;
	}
	unwind_table_free(&rest);
	*t = first;
	return 0;
}

static const struct arch *arch_of(Elf *elf)
{
	GElf_Ehdr eh;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return NULL;
	return arch_for_elf(eh.e_ident[EI_CLASS], eh.e_ident[EI_DATA], eh.e_machine);
}

int unwind_table_build(Elf *elf, Elf *debug, struct rule_set *set, struct unwind_table *table)
{
	const struct arch *arch = arch_of(elf);
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

void unwind_table_free(struct unwind_table *table)
{
	free(table->pc);
	free(table->rule);
	memset(table, 0, sizeof(*table));
}

uint16_t unwind_table_find(const struct unwind_table *table, uint64_t pc)
{
	uint32_t lo = 0, hi = table->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (table->pc[mid] <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->rule[lo - 1] : 0;
}

int elf_build_id(Elf *elf, uint8_t out[32])
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		size_t offset = 0, name, desc, next;
		GElf_Phdr ph;
		Elf_Data *d;
		GElf_Nhdr nh;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE)
			continue;
		d = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_NHDR);
		while (d && (next = gelf_getnote(d, offset, &nh, &name, &desc)) > 0) {
			if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 && nh.n_descsz <= 32 &&
			    !memcmp((char *)d->d_buf + name, "GNU", 4)) {
				memcpy(out, (char *)d->d_buf + desc, nh.n_descsz);
				return (int)nh.n_descsz;
			}
			offset = next;
		}
	}
	return 0;
}
