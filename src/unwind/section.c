/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/section.h"

#include <string.h>

Elf_Scn *elf_section(Elf *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *its;

		if (gelf_getshdr(scn, sh) && sh->sh_type != SHT_NOBITS &&
		    (its = elf_strptr(elf, names, sh->sh_name)) && !strcmp(its, name))
			return scn;
	}
	return NULL;
}

bool section_is_code(Elf_Scn *scn, GElf_Shdr *sh, const uint8_t **code)
{
	Elf_Data *d;

	if (!gelf_getshdr(scn, sh) || sh->sh_type != SHT_PROGBITS ||
	    !(sh->sh_flags & SHF_EXECINSTR))
		return false;
	d = elf_rawdata(scn, NULL);
	if (!d || !d->d_buf || d->d_size < sh->sh_size)
		return false;
	*code = d->d_buf;
	return true;
}
