/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/starts.h"

#include <stddef.h>

int starts_each_symbol(Elf *elf, symbol_fn *fn, void *ctx)
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

			if (!gelf_getsym(data, (int)i, &sym))
				continue;
			name = elf_strptr(elf, sh.sh_link, sym.st_name);
			err = fn(ctx, name ? name : "", &sym);
			if (err)
				return err;
		}
	}
	return 0;
}

struct functions {
	symbol_fn *fn;
	void *ctx;
};

static int if_function(void *ctx, const char *name, const GElf_Sym *sym)
{
	const struct functions *f = ctx;

	return sym->st_shndx != SHN_UNDEF && GELF_ST_TYPE(sym->st_info) == STT_FUNC
		   ? f->fn(f->ctx, name, sym)
		   : 0;
}

int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx)
{
	struct functions f = {fn, ctx};

	return starts_each_symbol(elf, if_function, &f);
}
