/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/elf_bytes.h"

#include <gelf.h>

struct bytes elf_bytes(Elf *elf, const struct arch *arch, uint64_t addr, uint64_t max)
{
	struct bytes b = {.big = arch->elf_data == ELFDATA2MSB};
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return b;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		Elf_Data *d;
		uint64_t into;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || addr < ph.p_vaddr ||
		    addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		into = addr - ph.p_vaddr;
		if (max > ph.p_filesz - into)
			max = ph.p_filesz - into;
		d = elf_getdata_rawchunk(elf, (int64_t)(ph.p_offset + into), max, ELF_T_BYTE);
		if (d && d->d_buf) {
			b.p = d->d_buf;
			b.end = b.p + d->d_size;
		}
		return b;
	}
	return b;
}
