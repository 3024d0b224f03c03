/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Call frame information to compact rows; libdw interprets it. */
#include "unwind/table.h"

#include <errno.h>
#include <gelf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/vec.h"
#include "unwind/starts.h"
#include "unwind/translate.h"

#define PARALLEL_FROM 20000u /* functions: below, a thread costs more than it brings */
#define MAX_THREADS   8

static int add_row(struct unwind_table *t, uint64_t pc, uint32_t rule)
{
	if (t->n && t->pc[t->n - 1] == pc) {
		t->rule[t->n - 1] = (uint16_t)rule;
		return 0;
	}
	if (t->n && t->rule[t->n - 1] == rule)
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

static int rows_of(Dwarf_CFI *cfi, uint64_t start, uint64_t limit, struct rule_set *set,
		   struct unwind_table *t)
{
	uint64_t at = start;

	while (at < limit) {
		Dwarf_Addr from = at, to = at;
		Dwarf_Frame *frame;
		bool signal = false;
		int err;

		if (dwarf_cfi_addrframe(cfi, at, &frame))
			break;
		if (dwarf_frame_info(frame, &from, &to, &signal) < 0 || to <= at) {
			free(frame);
			break;
		}
		err = add_row(t, at, translate_frame(frame, signal, set));
		free(frame);
		if (err)
			return err;
		/* Broken CFI may overlap: rows stay in order. */
		at = to < limit ? to : limit;
	}
	return add_row(t, at, 0);
}

/* Part of a file's functions, with a libdw handle and rules of its own. */
struct part {
	const char *image;
	size_t size;
	const uint64_t *start;
	size_t n;
	uint64_t limit; /* where the last one ends at the latest */
	struct rule_set *set;
	struct unwind_table table;
	int err;
};

static int rows_of_starts(Dwarf_CFI *cfi, const uint64_t *start, size_t n, uint64_t limit,
			  struct rule_set *set, struct unwind_table *t)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = rows_of(cfi, start[i], i + 1 < n ? start[i + 1] : limit, set, t);
	return err;
}

static void *run_part(void *arg)
{
	struct part *p = arg;
	Elf *elf = elf_memory((char *)p->image, p->size);
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;

	p->err = cfi ? rows_of_starts(cfi, p->start, p->n, p->limit, p->set, &p->table) : -ENOMEM;
	if (cfi)
		dwarf_cfi_end(cfi);
	elf_end(elf);
	return NULL;
}

/* The part's rows behind @t's, its rules into @set. */
static int append_part(const struct part *p, struct rule_set *set, struct unwind_table *t)
{
	const struct uw_full *full = rule_set_full(p->set);
	uint32_t n = rule_set_count(p->set);
	uint16_t *id = calloc(n, sizeof(*id));
	int err = id ? p->err : -ENOMEM;

	for (uint32_t i = 1; i < n && !err; i++)
		id[i] = (uint16_t)rule_set_add(set, &full[i]);
	for (uint32_t i = 0; i < p->table.n && !err; i++)
		err = add_row(t, p->table.pc[i], id[p->table.rule[i]]);
	free(id);
	return err;
}

/* Each thread has the file open for itself: libdw's handles are not for sharing. */
static int rows_in_parallel(Elf *elf, const struct starts *starts, unsigned threads,
			    struct rule_set *set, struct unwind_table *t)
{
	struct part part[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	unsigned started = 0;
	size_t size, done = 0;
	char *image = elf_rawfile(elf, &size);
	int err = image ? 0 : -ENOMEM;

	for (; started < threads && !err; started++) {
		size_t to = starts->at.n * (started + 1) / threads;

		part[started] =
		    (struct part){.image = image,
				  .size = size,
				  .start = starts->at.at + done,
				  .n = to - done,
				  .limit = to < starts->at.n ? starts->at.at[to] : UINT64_MAX,
				  .set = rule_set_new()};
		done = to;
		if (!part[started].set ||
		    pthread_create(&thread[started], NULL, run_part, &part[started])) {
			rule_set_free(part[started].set);
			err = -ENOMEM;
			break;
		}
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(thread[i], NULL);
		if (!err)
			err = append_part(&part[i], set, t);
		unwind_table_free(&part[i].table);
		rule_set_free(part[i].set);
	}
	return err;
}

static int rows_of_cfi(Elf *elf, struct rule_set *set, struct unwind_table *t)
{
	long threads = sysconf(_SC_NPROCESSORS_ONLN);
	struct starts starts = {0};
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	int err;

	if (!cfi)
		return 0;
	err = starts_of_cfi(elf, &starts);
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (!err && starts.at.n >= PARALLEL_FROM && threads > 1)
		err = rows_in_parallel(elf, &starts, (unsigned)threads, set, t);
	else if (!err)
		err = rows_of_starts(cfi, starts.at.at, starts.at.n, UINT64_MAX, set, t);
	dwarf_cfi_end(cfi);
	vec_free(&starts.at);
	return err;
}

/* Where programs and threads begin and libcs have no CFI: musl's C start code and thread start. */
static const char *const outermost[] = {
    "_start",  "_start_c", "libc_start_main_stage2", "__libc_start_main", "start", "start_c11",
    "__clone", "clone"};

struct gaps {
	struct unwind_table *table;
	VEC(uint64_t) at; /* pairs: start, end */
};

static int push_gap(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct gaps *gaps = ctx;

	for (size_t i = 0; i < sizeof(outermost) / sizeof(outermost[0]); i++) {
		if (strcmp(name, outermost[i]) || unwind_table_find(gaps->table, sym->st_value))
			continue;
		if (vec_push(&gaps->at, sym->st_value) ||
		    vec_push(&gaps->at, sym->st_value + (sym->st_size ? sym->st_size : 64)))
			return -ENOMEM;
	}
	return 0;
}

/* Merges the rows of @b, which holds what @a has no rule for, into @a. */
static int merge(struct unwind_table *a, const struct unwind_table *b)
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
		err = add_row(&out, pc, rule ? rule : unwind_table_find(b, pc));
	}
	if (err) {
		unwind_table_free(&out);
		return err;
	}
	unwind_table_free(a);
	*a = out;
	return 0;
}

static int fill_gaps(Elf *elf, struct unwind_table *t)
{
	struct unwind_table extra = {0};
	struct gaps gaps = {.table = t};
	int err = starts_each_function(elf, push_gap, &gaps);

	if (!err && gaps.at.n) {
		qsort(gaps.at.at, gaps.at.n / 2, 2 * sizeof(uint64_t), starts_by_value);
		for (size_t i = 0; i < gaps.at.n && !err; i += 2) {
			err = add_row(&extra, gaps.at.at[i], UW_RULE_OUTERMOST);
			if (!err)
				err = add_row(&extra, gaps.at.at[i + 1], 0);
		}
		if (!err)
			err = merge(t, &extra);
	}
	vec_free(&gaps.at);
	unwind_table_free(&extra);
	return err;
}

/* Rows from .debug_frame, for code that .eh_frame does not cover. */
static int add_debug_frame(Elf *elf, struct rule_set *set, struct unwind_table *t)
{
	struct unwind_table extra = {0};
	struct starts starts = {0};
	Dwarf *dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_CFI *cfi = dw ? dwarf_getcfi(dw) : NULL;
	int err = 0;

	if (cfi) {
		err = starts_of_symbols(elf, &starts);
		if (!err)
			err =
			    rows_of_starts(cfi, starts.at.at, starts.at.n, UINT64_MAX, set, &extra);
		if (!err && extra.n)
			err = merge(t, &extra);
	}
	vec_free(&starts.at);
	unwind_table_free(&extra);
	dwarf_end(dw);
	return err;
}

int unwind_table_build(Elf *elf, Elf *debug, struct rule_set *set, struct unwind_table *table)
{
	int err;

	memset(table, 0, sizeof(*table));
	if (elf_kind(elf) != ELF_K_ELF)
		return -EINVAL;
	err = rows_of_cfi(elf, set, table);
	if (!err)
		err = add_debug_frame(debug ? debug : elf, set, table);
	if (!err)
		err = fill_gaps(elf, table);
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
