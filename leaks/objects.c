/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/objects.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "unwind/symbols.h"

/* What has to be added to addresses of the file: from the first map of it and the first segment. */
static bool load_bias(struct image *img, Elf *elf, const struct image_map *map, uint64_t *bias)
{
	size_t n;

	vec_for_each (&img->maps, m) {
		if (strcmp(m->path, map->path) != 0)
			continue;
		if (elf_getphdrnum(elf, &n))
			return false;
		for (size_t i = 0; i < n; i++) {
			GElf_Phdr ph;

			if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
			    (ph.p_offset & ~4095ull) == m->offset) {
				*bias = m->start - (ph.p_vaddr & ~4095ull);
				return true;
			}
		}
		return false;
	}
	return false;
}

static bool search(Elf *elf, uint64_t value, char *name, size_t size)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || !sh.sh_entsize ||
		    (sh.sh_type != SHT_SYMTAB && sh.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
			const char *s;
			char *plain;
			GElf_Sym sym;

			if (!gelf_getsym(data, (int)i, &sym) ||
			    GELF_ST_TYPE(sym.st_info) != STT_OBJECT || value < sym.st_value ||
			    value - sym.st_value >= sym.st_size)
				continue;
			s = elf_strptr(elf, sh.sh_link, sym.st_name);
			if (!s)
				continue;
			plain = symbol_demangle(s);
			snprintf(name, size, value == sym.st_value ? "%s" : "%s+%" PRIu64,
				 plain ? plain : s, value - sym.st_value);
			free(plain);
			return true;
		}
	}
	return false;
}

bool object_at(struct image *img, uint64_t addr, char *name, size_t size)
{
	const struct image_map *m = image_map_at(img, addr);
	bool found = false;
	uint64_t bias;
	Elf *elf;
	int fd;

	/* .bss is mapped behind the file's data. */
	while (m && !m->path[0] && m > img->maps.at && m[-1].end == m->start)
		m--;
	fd = m ? image_open_file(img, m) : -1;
	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && load_bias(img, elf, m, &bias))
		found = search(elf, addr - bias, name, size);
	elf_end(elf);
	close(fd);
	return found;
}
