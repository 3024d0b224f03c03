/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/starts.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int starts_by_value(const void *a, const void *b)
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

int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx)
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

static int sorted(struct starts *starts, int err)
{
	size_t keep = 0;

	if (err || !starts->at.n) {
		vec_free(&starts->at);
		return err;
	}
	qsort(starts->at.at, starts->at.n, sizeof(uint64_t), starts_by_value);
	for (size_t i = 0; i < starts->at.n; i++) {
		if (!keep || starts->at.at[keep - 1] != starts->at.at[i])
			starts->at.at[keep++] = starts->at.at[i];
	}
	starts->at.n = keep;
	return 0;
}

int starts_of_cfi(Elf *elf, struct starts *starts)
{
	int err = starts_of_eh_frame(elf, starts);

	if (!err && !starts->at.n)
		err = starts_of_fdes(elf, starts);
	return sorted(starts, err);
}

int starts_of_symbols(Elf *elf, struct starts *starts)
{
	return sorted(starts, starts_each_function(elf, push_start, starts));
}
