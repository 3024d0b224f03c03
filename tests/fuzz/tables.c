/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sources of unwind tables, for every architecture: call frame information, .ARM.exidx, code
 * without tables, signal trampolines.  The first byte selects the architecture, the second the
 * reader.  The rest is what the reader reads, or the sections of a module that is otherwise valid,
 * which fuzzing whole files (elf.c) would hardly find.
 */
#include <gelf.h>
#include "fuzz.h"
#include "unwind/cfi.h"
#include "unwind/exidx.h"
#include "unwind/flow.h"
#include "unwind/sigtramp.h"
#include "unwind/table.h"
#include "unwind/rule_set.h"
#include "unwind/build.h"

enum { BASE = 0x400000, HEADERS = 0x400 };

/* Addresses of a module; at the last one its end wraps around. */
static const uint64_t bases[] = {BASE, 0, 0xfffff000, 0xfffffffffffff000};

/* Checks that all columns in a rule exist. */
static void check_rule(const struct uw_full *f)
{
	if (!f)
		return;
	if (f->cfa_reg >= UW_MAX_REGS || f->at_reg >= UW_MAX_REGS)
		abort();
	for (int i = 0; i < UW_MAX_REGS; i++) {
		if (f->where[i] == UW_REG && (f->off[i] < 0 || f->off[i] >= UW_MAX_REGS))
			abort();
	}
}

struct rows {
	uint64_t start, end, last; /* addresses */
	bool any;
};

/* Checks that rows are in order and inside their function. */
static int check_row(void *ctx, uint64_t pc, const struct uw_full *rule)
{
	struct rows *r = ctx;

	if (pc < r->start || pc > r->end || (r->any && pc < r->last))
		abort();
	r->last = pc;
	r->any = true;
	check_rule(rule);
	return 0;
}

static void fuzz_cfi(const struct arch *arch, bool debug, const uint8_t *data, size_t size)
{
	struct cfi cfi = {.data = data, .size = size, .addr = BASE, .arch = arch, .debug = debug};
	struct cfi_fdes fdes = {0};

	if (cfi_fdes(&cfi, &fdes))
		return;
	vec_for_each (&fdes.list, fde) {
		struct rows r = {.start = fde->start, .end = fde->end};

		if (fde->start >= fde->end || (fde != fdes.list.at && fde[-1].start >= fde->start))
			abort();
		cfi_rows(&cfi, fde, check_row, &r);
	}
	vec_free(&fdes.list);
}

static void fuzz_opcodes(const struct arch *arch, const uint8_t *data, size_t size)
{
	struct uw_full rule;

	if (exidx_rule(data, size, arch, &rule))
		check_rule(&rule);
}

static void fuzz_flow(const struct arch *arch, const uint8_t *data, size_t size)
{
	struct rows r = {.start = BASE};
	struct flow_starts calls = {0};
	uint8_t mode = size ? data[0] & 1 : 0;

	if (!arch->unwind.frame_insn || size < 2)
		return;
	r.end = BASE + size - 1;
	flow_rows(arch, data + 1, r.start, r.end, mode, &calls, check_row, &r);
	vec_free(&calls.list);
}

static void check_table(const struct unwind_table *t, const struct rule_set *set)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if ((i && t->pc[i] <= t->pc[i - 1]) || t->rule[i] >= rule_set_count(set) ||
		    unwind_table_find(t, t->pc[i]) != t->rule[i])
			abort();
	}
	for (uint32_t i = 0; i < rule_set_count(set); i++)
		check_rule(&rule_set_full(set)[i]);
}

static void fuzz_sigtramp(const struct arch *arch, const uint8_t *data, size_t size)
{
	struct rule_set *set = rule_set_new();
	struct unwind_table t = {0};

	if (set && !sigtramp_rows(arch, data, size, BASE, set, &t))
		check_table(&t, set);
	unwind_table_free(&t);
	rule_set_free(set);
}

/* ---------------------------------------------------------------- a module -- */

static const char names[] = "\0.text\0.eh_frame\0.pdr\0.names\0.symtab\0.strtab\0_start\0__clone";
enum { TEXT = 1, EH_FRAME = 7, PDR = 17, NAMES = 22, SYMTAB = 29, STRTAB = 37 };

struct part {
	uint64_t addr, offset, size;
};

static void add_segment(Elf *elf, int i, uint32_t type, uint32_t flags, struct part p)
{
	GElf_Phdr ph = {.p_type = type,
			.p_flags = flags,
			.p_offset = p.offset,
			.p_vaddr = p.addr,
			.p_paddr = p.addr,
			.p_filesz = p.size,
			.p_memsz = p.size,
			.p_align = 4};

	gelf_update_phdr(elf, i, &ph);
}

static void add_section(Elf *elf, uint32_t name, uint32_t type, uint64_t flags, struct part p,
			const void *bytes)
{
	Elf_Scn *scn = elf_newscn(elf);
	Elf_Data *d = elf_newdata(scn);
	GElf_Shdr sh;

	if (!d || !gelf_getshdr(scn, &sh))
		abort();
	*d = (Elf_Data){.d_buf = (void *)(uintptr_t)bytes,
			.d_type = ELF_T_BYTE,
			.d_version = EV_CURRENT,
			.d_size = p.size,
			.d_align = 1};
	sh.sh_name = name;
	sh.sh_type = type;
	sh.sh_flags = flags;
	sh.sh_addr = flags & SHF_ALLOC ? p.addr : 0;
	sh.sh_offset = p.offset;
	sh.sh_size = p.size;
	sh.sh_addralign = 1;
	sh.sh_link = type == SHT_SYMTAB ? 6 : 0;
	sh.sh_entsize = type == SHT_SYMTAB ? gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT) : 0;
	gelf_update_shdr(scn, &sh);
}

/* The quarters of @data become .text, tables and the symbols of a module for @arch. */
static void write_module(int fd, const struct arch *arch, uint64_t base, const uint8_t *data,
			 size_t size)
{
	Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
	size_t quarter = size / 4;
	struct part p[5];
	GElf_Ehdr eh;

	if (!elf || !gelf_newehdr(elf, arch->elf_class) || !gelf_newphdr(elf, 3) ||
	    !gelf_getehdr(elf, &eh))
		abort();
	if (arch->elf_class == ELFCLASS32)
		base = (uint32_t)base;
	for (size_t i = 0; i < 4; i++)
		p[i] = (struct part){base + i * quarter, HEADERS + i * quarter,
				     i < 3 ? quarter : size - 3 * quarter};
	p[3].size -= p[3].size % gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	p[4] = (struct part){0, HEADERS + size, sizeof(names)};
	elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
	eh.e_ident[EI_DATA] = arch->elf_data;
	eh.e_machine = arch->elf_machine;
	eh.e_type = ET_EXEC;
	eh.e_version = EV_CURRENT;
	eh.e_entry = base;
	eh.e_phoff = gelf_fsize(elf, ELF_T_EHDR, 1, EV_CURRENT);
	eh.e_shoff = (HEADERS + size + sizeof(names) + 7) & ~7ull;
	eh.e_shstrndx = 4;
	gelf_update_ehdr(elf, &eh);
	add_segment(elf, 0, PT_LOAD, PF_R | PF_X, (struct part){base, HEADERS, size});
	add_segment(elf, 1, PT_ARM_EXIDX, PF_R, p[1]);
	add_segment(elf, 2, PT_GNU_EH_FRAME, PF_R, p[2]);
	add_section(elf, TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, p[0], data);
	add_section(elf, EH_FRAME, SHT_PROGBITS, SHF_ALLOC, p[1], data + quarter);
	add_section(elf, PDR, SHT_PROGBITS, 0, p[2], data + 2 * quarter);
	add_section(elf, NAMES, SHT_STRTAB, 0, p[4], names);
	add_section(elf, SYMTAB, SHT_SYMTAB, 0, p[3], data + 3 * quarter);
	add_section(elf, STRTAB, SHT_STRTAB, 0, p[4], names);
	if (elf_update(elf, ELF_C_WRITE) < 0)
		abort();
	elf_end(elf);
}

static void fuzz_module(const struct arch *arch, const uint8_t *data, size_t size)
{
	struct rule_set *set = rule_set_new();
	struct unwind_table t = {0};
	char path[64];
	int fd = input_file("", 0, path);
	Elf *elf;

	write_module(fd, arch, bases[data[0] % 4], data + 1, size - 1);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && set && !unwind_table_build(elf, NULL, set, &t)) {
		check_table(&t, set);
		unwind_table_free(&t);
	}
	elf_end(elf);
	rule_set_free(set);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	const struct arch *arch = input_arch(&in);
	uint8_t which = (uint8_t)input_number(&in, 1);
	char *own;

	if (size < 8)
		return 0;
	elf_version(EV_CURRENT);
	/* Copy it to the heap, so that ASan detects reads after the end. */
	own = malloc(in.left);
	if (!own)
		return 0;
	memcpy(own, in.at, in.left);
	switch (which % 6) {
	case 0:
	case 1:
		fuzz_cfi(arch, which % 6, (uint8_t *)own, in.left);
		break;
	case 2:
		fuzz_opcodes(arch, (uint8_t *)own, in.left);
		break;
	case 3:
		fuzz_flow(arch, (uint8_t *)own, in.left);
		break;
	case 4:
		fuzz_sigtramp(arch, (uint8_t *)own, in.left);
		break;
	default:
		fuzz_module(arch, (uint8_t *)own, in.left);
	}
	free(own);
	return 0;
}
