/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/untabled.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "unwind/bytes.h"
#include "unwind/exidx.h"
#include "unwind/flow.h"
#include "unwind/rule_set.h"
#include "unwind/section.h"
#include "unwind/starts.h"
#include "unwind/table.h"

#define MODE_UNKNOWN 0xff
/* Bytes of struct pdr (MIPS procedure descriptor), which begins with the address */
#define PDR_ENTRY 32

struct building {
	Elf *elf;
	const struct arch *arch;
	struct rule_set *set;
	struct unwind_table *rows;
	struct flow_starts starts;
};

/* ---------------------------------------------------------------- starts -- */

static int add_start(struct building *b, uint64_t addr, uint8_t mode)
{
	struct flow_start s = {addr, mode};

	return vec_push(&b->starts.list, s);
}

/* Adds the address of a symbol or entry point, which includes the mode bit. */
static int add_moded(struct building *b, uint64_t addr)
{
	bool moded = b->arch->elf_machine == EM_ARM;

	return add_start(b, moded ? addr & ~1ull : addr, moded ? addr & 1 : 0);
}

static int add_symbol(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct building *b = ctx;
	int err = add_moded(b, sym->st_value);

	(void)name;
	return err || !sym->st_size ? err : add_moded(b, sym->st_value + sym->st_size);
}

static int add_entry(void *ctx, uint64_t start, const struct uw_full *rule)
{
	(void)rule;
	return add_start(ctx, start, MODE_UNKNOWN);
}

/* Adds the functions of MIPS procedure descriptors, which have the low 32 bits of addresses. */
static int add_descriptors(struct building *b, Elf_Data *d, uint64_t high)
{
	struct bytes in = {.p = d->d_buf,
			   .end = (uint8_t *)d->d_buf + d->d_size,
			   .big = b->arch->elf_data == ELFDATA2MSB};
	int err = 0;

	while (in.end - in.p >= PDR_ENTRY && !err) {
		uint64_t addr = bytes_take(&in, 4);

		in.p += PDR_ENTRY - 4;
		err = add_start(b, high | addr, 0);
	}
	return err;
}

static int by_addr(const void *x, const void *y)
{
	const struct flow_start *a = x, *b = y;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->mode - b->mode;
}

/* Sorts the starts and removes duplicates.  An unknown mode becomes that of the previous
 * function. */
static void settle_starts(struct building *b)
{
	struct flow_start *s = b->starts.list.at;
	size_t n = b->starts.list.n, keep = 0, thumb = 0;
	uint8_t mode;

	for (size_t i = 0; i < n; i++)
		thumb += s[i].mode == 1;
	mode = thumb > n / 3;
	if (n)
		qsort(s, n, sizeof(*s), by_addr);
	for (size_t i = 0; i < n; i++) {
		if (keep && s[keep - 1].addr == s[i].addr)
			continue;
		if (s[i].mode == MODE_UNKNOWN)
			s[i].mode = mode;
		mode = s[i].mode;
		s[keep++] = s[i];
	}
	b->starts.list.n = keep;
}

/* ---------------------------------------------------------------- code -- */

static int push_row(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	struct building *b = ctx;

	return unwind_table_add(b->rows, pc, rule ? rule_set_add(b->set, rule) : 0);
}

static int no_row(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	(void)ctx;
	(void)pc;
	(void)rule;
	return 0;
}

static size_t first_start(const struct building *b, uint64_t addr)
{
	size_t lo = 0, hi = b->starts.list.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (b->starts.list.at[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Follows the functions of a section.  @calls: only collect the functions they call; NULL: compute
 * their rows. */
static int follow_section(struct building *b, const GElf_Shdr *sh, const uint8_t *code,
			  struct flow_starts *calls)
{
	size_t k = first_start(b, sh->sh_addr);
	uint64_t at = sh->sh_addr, end = at + sh->sh_size;
	uint8_t mode = k ? b->starts.list.at[k - 1].mode : 0;
	int err = 0;

	while (at < end && !err) {
		uint64_t next = end;

		for (; k < b->starts.list.n && b->starts.list.at[k].addr <= at; k++)
			mode = b->starts.list.at[k].mode;
		if (k < b->starts.list.n && b->starts.list.at[k].addr < end)
			next = b->starts.list.at[k].addr;
		err = flow_rows(b->arch, code + (at - sh->sh_addr), at, next, mode, calls,
				calls ? no_row : push_row, b);
		at = next;
	}
	return err;
}

/* Sections must be in order of addresses; others are left out. */
static int each_section(struct building *b, struct flow_starts *calls)
{
	Elf_Scn *scn = NULL;
	uint64_t last = 0;
	int err = 0;

	while ((scn = elf_nextscn(b->elf, scn)) && !err) {
		const uint8_t *code;
		GElf_Shdr sh;

		if (!section_is_code(scn, &sh, &code) || sh.sh_addr < last)
			continue;
		err = follow_section(b, &sh, code, calls);
		last = sh.sh_addr + sh.sh_size;
	}
	return err;
}

static int starts_of_sections(struct building *b)
{
	Elf_Scn *scn = NULL;
	uint64_t high = 0;
	size_t names;
	int err = 0;

	if (elf_getshdrstrndx(b->elf, &names))
		return 0;
	while ((scn = elf_nextscn(b->elf, scn)) && !err) {
		const char *name;
		Elf_Data *d;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			continue;
		if (sh.sh_flags & SHF_EXECINSTR)
			high = sh.sh_addr & ~0xffffffffull;
		name = elf_strptr(b->elf, names, sh.sh_name);
		if (b->arch->elf_machine == EM_MIPS && name && !strcmp(name, ".pdr") &&
		    (d = elf_rawdata(scn, NULL)) && d->d_buf)
			err = add_descriptors(b, d, high);
	}
	return err;
}

static int find_starts(struct building *b, const struct unwind_table *known)
{
	struct flow_starts calls = {0};
	GElf_Ehdr eh;
	int err = starts_each_function(b->elf, add_symbol, b);

	if (!err && gelf_getehdr(b->elf, &eh) && eh.e_entry)
		err = add_moded(b, eh.e_entry);
	if (!err)
		err = exidx_each(b->elf, b->arch, add_entry, b);
	if (!err)
		err = starts_of_sections(b);
	for (uint32_t i = 0; i < known->n && !err; i++) {
		/* There is no rule between functions. */
		if (!known->rule[i] || !i || !known->rule[i - 1])
			err = add_start(b, known->pc[i], MODE_UNKNOWN);
	}
	settle_starts(b);
	if (!err)
		err = each_section(b, &calls);
	vec_for_each (&calls.list, c) {
		if (!err)
			err = vec_push(&b->starts.list, *c);
	}
	vec_free(&calls.list);
	settle_starts(b);
	return err;
}

/* ---------------------------------------------------------------- combining both -- */

/* Return: whether a row between two addresses has @rule. */
static bool holds(const struct unwind_table *t, uint64_t from, uint64_t to, uint16_t rule)
{
	uint32_t lo = 0, hi = t->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->pc[mid] < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < t->n && t->pc[lo] < to; lo++) {
		if (t->rule[lo] == rule)
			return true;
	}
	return false;
}

/* Copies @tabled to @out without the rules that @code refines. */
static int drop_refined(const struct unwind_table *tabled, const struct unwind_table *code,
			struct unwind_table *out)
{
	int err = 0;

	for (uint32_t i = 0; i < tabled->n && !err; i++) {
		uint64_t end = i + 1 < tabled->n ? tabled->pc[i + 1] : UINT64_MAX;
		uint16_t rule = tabled->rule[i];

		if (holds(code, tabled->pc[i], end, rule))
			rule = 0;
		err = unwind_table_add(out, tabled->pc[i], rule);
	}
	return err;
}

static int combine(struct building *b, const struct unwind_table *tabled,
		   const struct unwind_table *code)
{
	int err = drop_refined(tabled, code, b->rows);

	if (!err)
		err = unwind_table_merge(b->rows, code);
	return err ? err : unwind_table_merge(b->rows, tabled);
}

int untabled_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t)
{
	struct unwind_table tabled = {0}, code = {0};
	struct building b = {.elf = elf, .arch = arch, .set = set, .rows = &code};
	int err;

	if (!arch->unwind.frame_insn)
		return 0;
	err = find_starts(&b, known);
	if (!err)
		err = each_section(&b, NULL);
	b.rows = &tabled;
	if (!err)
		err = exidx_each(elf, arch, push_row, &b);
	b.rows = t;
	if (!err)
		err = combine(&b, &tabled, &code);
	vec_free(&b.starts.list);
	unwind_table_free(&tabled);
	unwind_table_free(&code);
	return err;
}
