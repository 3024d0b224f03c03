/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/build_id.h"

#include <gelf.h>
#include <string.h>

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

bool elf_is_build(int fd, const uint8_t *id, size_t n)
{
	uint8_t own[32];
	bool is;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	is = elf && elf_kind(elf) == ELF_K_ELF &&
	     (!n || (elf_build_id(elf, own) == (int)n && !memcmp(own, id, n)));
	elf_end(elf);
	return is;
}
