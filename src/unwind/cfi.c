/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses sections, CIEs and FDEs. interpret.c executes their instructions. */
#include "unwind/cfi.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include "unwind/elf_bytes.h"
#include "unwind/section.h"

#define MAX_UNPACKED (256ull << 20) /* maximum decompressed size of a section */

enum { APPLICATION = 0x70, FORMAT = 0x0f, EXTENDED = 0xffffffff };

static struct bytes bytes_at(const struct cfi *cfi, size_t offset)
{
	return (struct bytes){.p = cfi->data + (offset < cfi->size ? offset : cfi->size),
			      .end = cfi->data + cfi->size,
			      .big = cfi->arch->elf_data == ELFDATA2MSB};
}

static unsigned word_of(const struct cfi *cfi)
{
	return cfi->arch->elf_class == ELFCLASS64 ? 8 : 4;
}

static uint64_t address_of(const struct cfi *cfi, uint64_t value)
{
	return word_of(cfi) == 4 ? (uint32_t)value : value;
}

/* Reads a number in one of the formats of DW_EH_PE_*, without adding its base. */
static uint64_t take_encoded(const struct cfi *cfi, struct bytes *b, uint8_t encoding)
{
	switch (encoding & FORMAT) {
	case DW_EH_PE_absptr:
		return bytes_take(b, word_of(cfi));
	case DW_EH_PE_uleb128:
		return bytes_uleb(b);
	case DW_EH_PE_sleb128:
		return (uint64_t)bytes_sleb(b);
	case DW_EH_PE_udata2:
		return bytes_take(b, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)bytes_take_signed(b, 2);
	case DW_EH_PE_udata4:
		return bytes_take(b, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)bytes_take_signed(b, 4);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_take(b, 8);
	}
	b->lacking = true;
	return 0;
}

static uint64_t take_address(const struct cfi *cfi, struct bytes *b, uint8_t encoding)
{
	uint64_t at = cfi->addr + (uint64_t)(b->p - cfi->data);
	uint64_t value = take_encoded(cfi, b, encoding);

	if ((encoding & APPLICATION) == DW_EH_PE_pcrel)
		value += at;
	else if (encoding & APPLICATION)
		b->lacking = true;
	return address_of(cfi, value);
}

struct entry {
	struct bytes body; /* bytes after the id */
	size_t next;	   /* offset of the next entry */
	uint64_t cie;	   /* offset of an FDE's CIE */
	bool is_cie;
};

static bool read_entry(const struct cfi *cfi, size_t offset, struct entry *e)
{
	struct bytes b = bytes_at(cfi, offset);
	uint64_t length = bytes_take(&b, 4), id;
	unsigned size = 4;
	size_t id_at;

	if (length == EXTENDED) {
		length = bytes_take(&b, 8);
		size = cfi->debug ? 8 : 4;
	}
	if (b.lacking || !length || length > (uint64_t)(b.end - b.p))
		return false;
	e->body = bytes_part(&b, length);
	e->next = (size_t)(e->body.end - cfi->data);
	id_at = (size_t)(e->body.p - cfi->data);
	id = bytes_take(&e->body, size);
	if (cfi->debug) {
		e->is_cie = id == (size == 8 ? UINT64_MAX : EXTENDED);
		e->cie = id;
	} else {
		e->is_cie = !id;
		e->cie = id_at - id;
	}
	return !e->body.lacking && (e->is_cie || e->cie < cfi->size);
}

/* Reads the augmentation data, one item for each letter. */
static bool read_augmentation(const struct cfi *cfi, const char *letters, struct bytes data,
			      struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)bytes_take(&data, 1);
			break;
		case 'L':
			bytes_take(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)bytes_take(&data, 1);
			take_encoded(cfi, &data, encoding);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64: return addresses are signed with key B */
		case 'G': /* AArch64: tagged frames */
			break;
		default:
			return false;
		}
	}
	return !data.lacking;
}

bool cfi_read_cie(const struct cfi *cfi, size_t offset, struct cfi_cie *cie)
{
	const char *letters;
	struct entry e;
	struct bytes *b = &e.body;
	uint8_t version;

	*cie = (struct cfi_cie){.encoding = DW_EH_PE_absptr};
	if (!read_entry(cfi, offset, &e) || !e.is_cie)
		return false;
	version = (uint8_t)bytes_take(b, 1);
	if (version != 1 && version != 3 && version != 4)
		return false;
	letters = (const char *)b->p;
	do {
		if (b->p == b->end)
			return false;
	} while (bytes_take(b, 1));
	if (version == 4 && (bytes_take(b, 1) != word_of(cfi) || bytes_take(b, 1)))
		return false;
	cie->code_factor = bytes_uleb(b);
	cie->data_factor = bytes_sleb(b);
	cie->ra_register = (uint32_t)(version == 1 ? bytes_take(b, 1) : bytes_uleb(b));
	if (*letters == 'z') {
		cie->sized = true;
		if (!read_augmentation(cfi, letters + 1, bytes_part(b, bytes_uleb(b)), cie))
			return false;
	} else if (*letters) {
		return false;
	}
	cie->insns = *b;
	return !b->lacking;
}

static bool read_fde(const struct cfi *cfi, const struct entry *e, const struct cfi_cie *cie,
		     struct cfi_fde *fde)
{
	struct bytes b = e->body;
	uint64_t length;

	fde->start = take_address(cfi, &b, cie->encoding);
	length = take_encoded(cfi, &b, cie->encoding & FORMAT);
	fde->end = fde->start + address_of(cfi, length);
	fde->cie = e->cie;
	if (cie->sized)
		bytes_part(&b, bytes_uleb(&b));
	fde->insns = (size_t)(b.p - cfi->data);
	fde->insns_end = (size_t)(b.end - cfi->data);
	/* The linker leaves entries at address 0 for code that it dropped. */
	return !b.lacking && fde->start && fde->end > fde->start;
}

static int by_start(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->insns < y->insns ? -1 : x->insns > y->insns;
}

int cfi_fdes(const struct cfi *cfi, struct cfi_fdes *fdes)
{
	size_t offset = 0, cie_at = SIZE_MAX, keep = 0;
	struct cfi_cie cie;
	bool known = false;
	struct entry e;

	for (; read_entry(cfi, offset, &e); offset = e.next) {
		struct cfi_fde fde;

		if (e.is_cie)
			continue;
		if (e.cie != cie_at) {
			cie_at = e.cie;
			known = cfi_read_cie(cfi, cie_at, &cie);
		}
		if (known && read_fde(cfi, &e, &cie, &fde) && vec_push(&fdes->list, fde)) {
			vec_free(&fdes->list);
			return -ENOMEM;
		}
	}
	vec_sort(&fdes->list, by_start);
	for (size_t i = 0; i < fdes->list.n; i++) {
		if (!keep || fdes->list.at[keep - 1].start != fdes->list.at[i].start)
			fdes->list.at[keep++] = fdes->list.at[i];
	}
	fdes->list.n = keep;
	return 0;
}

static bool open_at(Elf *elf, uint64_t addr, struct cfi *cfi)
{
	struct bytes b = elf_bytes(elf, cfi->arch, addr, UINT64_MAX);

	cfi->data = b.p;
	cfi->size = (size_t)(b.end - b.p);
	cfi->addr = addr;
	return cfi->size > 0;
}

/* Finds .eh_frame by .eh_frame_hdr (LSB 5.0, 10.6.2), which works without section headers, too. */
static bool open_header(Elf *elf, struct cfi *cfi)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct cfi hdr = *cfi;
		struct bytes b;
		uint64_t addr;
		uint8_t encoding;
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME ||
		    !open_at(elf, ph.p_vaddr, &hdr))
			continue;
		b = bytes_at(&hdr, 0);
		if (bytes_take(&b, 1) != 1)
			continue;
		encoding = (uint8_t)bytes_take(&b, 1);
		bytes_take(&b, 2);
		addr = take_address(&hdr, &b, encoding);
		if (!b.lacking && open_at(elf, addr, cfi))
			return true;
	}
	return false;
}

static bool open_section(Elf *elf, const char *wanted, struct cfi *cfi)
{
	Elf_Data *data;
	GElf_Chdr ch;
	GElf_Shdr sh;
	Elf_Scn *scn = elf_section(elf, wanted, &sh);

	if (!scn ||
	    (sh.sh_flags & SHF_COMPRESSED &&
	     (!gelf_getchdr(scn, &ch) || ch.ch_size > MAX_UNPACKED || elf_compress(scn, 0, 0) < 0)))
		return false;
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf)
		return false;
	cfi->data = data->d_buf;
	cfi->size = data->d_size;
	cfi->addr = sh.sh_addr;
	return true;
}

bool cfi_open(Elf *elf, const struct arch *arch, bool debug, struct cfi *cfi)
{
	*cfi = (struct cfi){.arch = arch, .debug = debug};
	if (debug)
		return open_section(elf, ".debug_frame", cfi);
	return open_header(elf, cfi) || open_section(elf, ".eh_frame", cfi);
}
