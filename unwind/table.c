/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Call frame information to compact rows.  libdw interprets it; what a row says is translated to
 * struct uw_full, and what that cannot say becomes "no rule", never a guess.
 */
#include "unwind/table.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "lib/vec.h"
#include "unwind/step.h"

struct starts {
	VEC(uint64_t) at;
};

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

/* ------------------------------------------------------------------- one row -- */

/* lit0 .. lit31, const1u and so on in a PLT expression. */
static bool is_plt(const Dwarf_Op *op, size_t n, int32_t *threshold)
{
	/* breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: as binutils write it. */
	if (n != 9 || op[0].atom != DW_OP_breg7 || op[0].number != 8 ||
	    op[1].atom != DW_OP_breg16 || op[2].atom != DW_OP_lit15 || op[3].atom != DW_OP_and ||
	    op[4].atom < DW_OP_lit0 || op[4].atom > DW_OP_lit31 || op[5].atom != DW_OP_ge ||
	    op[6].atom != DW_OP_lit3 || op[7].atom != DW_OP_shl || op[8].atom != DW_OP_plus)
		return false;
	*threshold = op[4].atom - DW_OP_lit0;
	return true;
}

/* register + offset in either spelling. */
static bool is_breg(const Dwarf_Op *op, uint32_t *reg, int64_t *off)
{
	if (op->atom == DW_OP_bregx) {
		*reg = (uint32_t)op->number;
		*off = (int64_t)op->number2;
	} else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = op->atom - DW_OP_breg0;
		*off = (int64_t)op->number;
	} else {
		return false;
	}
	return *reg < UW_MAX_REGS && *off == (int32_t)*off;
}

static bool translate_cfa(Dwarf_Frame *frame, struct uw_full *f)
{
	size_t n;
	Dwarf_Op *op;
	uint32_t reg;
	int64_t off;

	if (dwarf_frame_cfa(frame, &op, &n) || !n)
		return false;
	if (is_plt(op, n, &f->cfa_off)) {
		f->cfa_kind = UW_CFA_PLT;
		f->cfa_reg = UW_REG_SP;
		return true;
	}
	if (!is_breg(op, &reg, &off))
		return false;
	if (n == 1)
		f->cfa_kind = UW_CFA_REG;
	else if (n == 2 && op[1].atom == DW_OP_deref)
		f->cfa_kind = UW_CFA_DEREF;
	else
		return false;
	f->cfa_reg = (uint8_t)reg;
	f->cfa_off = (int32_t)off;
	return true;
}

static bool translate_register(Dwarf_Frame *frame, int i, struct uw_full *f)
{
	Dwarf_Op mem[3], *op;
	int64_t off = 0;
	uint32_t reg;
	size_t n;

	if (dwarf_frame_register(frame, i, mem, &op, &n))
		return false;
	if (!n) {
		f->where[i] = op ? UW_UNDEFINED : UW_SAME;
		return true;
	}
	if (op[0].atom == DW_OP_regx && n == 1) {
		f->where[i] = UW_REG;
		f->off[i] = (int32_t)op[0].number;
		return op[0].number < UW_MAX_REGS;
	}
	if (op[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (n == 1) {
		f->where[i] = UW_AT_CFA;
		return true;
	}
	if (op[1].atom == DW_OP_plus_uconst || op[1].atom == DW_OP_consts) {
		off = (int64_t)op[1].number;
		f->where[i] = n == 3 && op[2].atom == DW_OP_stack_value ? UW_CFA_PLUS : UW_AT_CFA;
		if (n > 2 && f->where[i] != UW_CFA_PLUS)
			return false;
	} else if (n == 2 && op[1].atom == DW_OP_stack_value) {
		f->where[i] = UW_CFA_PLUS;
	} else if (n == 2 && is_breg(&op[1], &reg, &off)) {
		/* An expression that does not use the CFA: signal frames, realigned stacks. */
		if (f->at_reg && f->at_reg != reg)
			return false;
		f->at_reg = (uint8_t)reg;
		f->where[i] = UW_AT_REG;
	} else {
		return false;
	}
	f->off[i] = (int32_t)off;
	return off == (int32_t)off;
}

enum { DWARF_RAX = 0, DWARF_RBX = 3 };

/*
 * elfutils 0.188 gives the "same value" that the x86-64 ABI promises for rbx to rax: without an
 * explicit rule rbx reads as undefined and rax as kept.  Any walk through code whose CFA is in rbx
 * (_dl_runtime_resolve) would end there.
 */
static void correct_abi_default(Dwarf_Frame *frame, struct uw_full *f)
{
	Dwarf_Op mem[3], *op;
	size_t n;

	if (f->where[DWARF_RBX] == UW_UNDEFINED &&
	    !dwarf_frame_register(frame, DWARF_RAX, mem, &op, &n) && (n || !op))
		f->where[DWARF_RBX] = UW_SAME;
}

/* What a callee saves, and the return address; other registers are lost by any call. */
static const uint8_t preserved[] = {3, 6, 7, 12, 13, 14, 15, 16};

static uint32_t translate(Dwarf_Frame *frame, bool signal, struct rule_set *set)
{
	struct uw_full f;

	memset(&f, 0, sizeof(f));
	memset(f.where, UW_UNDEFINED, sizeof(f.where));
	if (!translate_cfa(frame, &f))
		return 0;
	f.flags = signal ? UW_SIGNAL : 0;
	if (signal) {
		for (int i = 0; i < UW_MAX_REGS; i++) {
			if (!translate_register(frame, i, &f))
				return 0;
		}
	} else {
		for (size_t i = 0; i < sizeof(preserved); i++) {
			if (!translate_register(frame, preserved[i], &f))
				return 0;
		}
	}
	correct_abi_default(frame, &f);
	/* Both are what "the caller's stack pointer is the CFA" looks like. */
	if (f.where[UW_REG_SP] == UW_UNDEFINED ||
	    (f.where[UW_REG_SP] == UW_CFA_PLUS && !f.off[UW_REG_SP]))
		f.where[UW_REG_SP] = UW_SAME;
	if (f.where[UW_REG_PC] == UW_UNDEFINED || f.where[UW_REG_PC] == UW_SAME)
		f.flags |= UW_OUTERMOST;
	return rule_set_add(set, &f);
}

/* ------------------------------------------------------------------- where functions start -- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The search table of .eh_frame_hdr (LSB 4.1, 10.6.2): version, encodings, pointer, count, then
 * pairs of 4-byte offsets from the section's start. */
static int starts_of_eh_frame(Elf *elf, struct starts *starts)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		Elf_Data *data;
		const uint8_t *p;
		uint32_t count;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
		if (!data || data->d_size < 12)
			continue;
		p = data->d_buf;
		/* udata4 count, datarel sdata4 table: what every linker writes. */
		if (p[0] != 1 || p[2] != 0x03 || p[3] != 0x3b)
			continue;
		memcpy(&count, p + 8, sizeof(count));
		if (count > (data->d_size - 12) / 8)
			count = (uint32_t)((data->d_size - 12) / 8);
		for (uint32_t k = 0; k < count; k++) {
			int32_t rel;

			memcpy(&rel, p + 12 + 8 * k, sizeof(rel));
			if (vec_push(&starts->at, ph.p_vaddr + (uint64_t)(int64_t)rel))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Encoding of a CIE's addresses (LSB 4.1, 10.5.1): -1 if it cannot be told. */
static int cie_encoding(const Dwarf_CIE *cie)
{
	const uint8_t *p = cie->augmentation_data, *end = p + cie->augmentation_data_size;

	if (cie->augmentation[0] != 'z')
		return cie->augmentation[0] ? -1 : DW_EH_PE_absptr;
	for (const char *a = cie->augmentation + 1; *a; a++) {
		if (*a == 'R')
			return p < end ? *p : -1;
		if (*a == 'L')
			p++;
		else if (*a == 'P') /* an encoding and a pointer of it */
			p += p < end && (*p & 0x07) == DW_EH_PE_absptr	 ? 9
			     : p < end && (*p & 0x07) == DW_EH_PE_udata8 ? 9
									 : 5;
		else if (*a != 'S' && *a != 'B')
			return -1;
	}
	return DW_EH_PE_absptr;
}

static bool decode_start(const uint8_t *p, const uint8_t *end, int encoding, uint64_t at,
			 uint64_t *start)
{
	int64_t value;
	int32_t half;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		if (end - p < 8)
			return false;
		memcpy(&value, p, 8);
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		if (end - p < 4)
			return false;
		memcpy(&half, p, 4);
		value = (encoding & 0x0f) == DW_EH_PE_udata4 ? (int64_t)(uint32_t)half : half;
		break;
	default:
		return false;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		value += (int64_t)at;
	else if (encoding & 0x70)
		return false;
	*start = (uint64_t)value;
	return true;
}

/* Every FDE of .eh_frame: static programs have no search table. */
static int starts_of_fdes(Elf *elf, struct starts *starts)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		Dwarf_Off offset = 0, next;
		Dwarf_CFI_Entry entry, cie;
		GElf_Shdr sh;
		Elf_Data *data;
		const char *name;

		if (!gelf_getshdr(scn, &sh) || !(name = elf_strptr(elf, names, sh.sh_name)) ||
		    strcmp(name, ".eh_frame") || !(data = elf_getdata(scn, NULL)))
			continue;
		for (;
		     dwarf_next_cfi(ident, data, true, offset, &next, &entry) == 0 && next > offset;
		     offset = next) {
			Dwarf_Off ignored;
			uint64_t start;

			if (dwarf_cfi_cie_p(&entry) ||
			    dwarf_next_cfi(ident, data, true, entry.fde.CIE_pointer, &ignored,
					   &cie) ||
			    !dwarf_cfi_cie_p(&cie))
				continue;
			if (decode_start(entry.fde.start, entry.fde.end, cie_encoding(&cie.cie),
					 sh.sh_addr +
					     (uint64_t)(entry.fde.start - (uint8_t *)data->d_buf),
					 &start) &&
			    vec_push(&starts->at, start))
				return -ENOMEM;
		}
	}
	return 0;
}

typedef int symbol_fn(void *ctx, const char *name, const GElf_Sym *sym);

static int each_function(Elf *elf, symbol_fn *fn, void *ctx)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || !sh.sh_entsize ||
		    (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < data->d_size / sh.sh_entsize; i++) {
			const char *name;
			GElf_Sym sym;
			int err;

			if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
				continue;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			err = fn(ctx, name ? name : "", &sym);
			if (err)
				return err;
		}
	}
	return 0;
}

static int push_start(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct starts *starts = ctx;

	(void)name;
	return vec_push(&starts->at, sym->st_value);
}

/* ------------------------------------------------------------------- building -- */

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
		err = add_row(t, at, translate(frame, signal, set));
		free(frame);
		if (err)
			return err;
		/* Broken CFI may overlap: rows stay in order. */
		at = to < limit ? to : limit;
	}
	return add_row(t, at, 0);
}

static int rows_of_all(Dwarf_CFI *cfi, struct starts *starts, struct rule_set *set,
		       struct unwind_table *t)
{
	int err = 0;

	if (starts->at.n)
		qsort(starts->at.at, starts->at.n, sizeof(uint64_t), by_value);
	for (size_t i = 0; i < starts->at.n && !err; i++) {
		uint64_t next = i + 1 < starts->at.n ? starts->at.at[i + 1] : UINT64_MAX;

		if (starts->at.at[i] != next)
			err = rows_of(cfi, starts->at.at[i], next, set, t);
	}
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
	int err = each_function(elf, push_gap, &gaps);

	if (!err && gaps.at.n) {
		qsort(gaps.at.at, gaps.at.n / 2, 2 * sizeof(uint64_t), by_value);
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
		err = each_function(elf, push_start, &starts);
		if (!err)
			err = rows_of_all(cfi, &starts, set, &extra);
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
	struct starts starts = {0};
	Dwarf_CFI *cfi;
	int err;

	memset(table, 0, sizeof(*table));
	if (elf_kind(elf) != ELF_K_ELF)
		return -EINVAL;
	cfi = dwarf_getcfi_elf(elf);
	err = cfi ? starts_of_eh_frame(elf, &starts) : 0;
	if (!err && cfi && !starts.at.n)
		err = starts_of_fdes(elf, &starts);
	if (!err && cfi)
		err = rows_of_all(cfi, &starts, set, table);
	if (cfi)
		dwarf_cfi_end(cfi);
	vec_free(&starts.at);
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
