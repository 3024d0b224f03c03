/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/vdso.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VDSO (256u << 10)

/* Value of a symbol, relative to the start of the image. */
static uint64_t symbol_value(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *it = elf_strptr(elf, sh.sh_link, sym.st_name);

			if (it && !strcmp(it, name) && sym.st_shndx != SHN_UNDEF)
				return sym.st_value;
		}
	}
	return 0;
}

uint64_t vdso_function(struct target *t, const struct maps *maps, const char *name)
{
	uint64_t value = 0;

	vec_for_each (&maps->list, m) {
		size_t length = m->end - m->start;
		char *image;
		Elf *elf;

		if (strcmp(m->path, "[vdso]") || length > MAX_VDSO)
			continue;
		image = malloc(length);
		if (image && !mem_read(&t->mem, m->start, image, length)) {
			elf = elf_memory(image, length);
			value = elf ? symbol_value(elf, name) : 0;
			elf_end(elf);
			value = value && value < length ? m->start + value : 0;
		}
		free(image);
	}
	return value;
}
