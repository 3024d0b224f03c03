/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/growth/objects.h"

#include <gelf.h>
#include <string.h>
#include <unistd.h>
#include "unwind/starts.h"

/* The difference between addresses in memory and in the file, from the first map of the file and
 * its first segment. */
static bool load_bias(struct image *img, Elf *elf, const struct image_map *map, uint64_t *bias)
{
	const uint64_t page = ~(uint64_t)(img->page_size - 1);
	size_t n;

	vec_for_each (&img->maps, m) {
		if (strcmp(m->path, map->path) != 0)
			continue;
		if (elf_getphdrnum(elf, &n))
			return false;
		for (size_t i = 0; i < n; i++) {
			GElf_Phdr ph;

			if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
			    (ph.p_offset & page) == m->offset) {
				*bias = m->start - (ph.p_vaddr & page);
				return true;
			}
		}
		return false;
	}
	return false;
}

static bool is_object(const char *name, const GElf_Sym *sym)
{
	return *name && sym->st_shndx && GELF_ST_TYPE(sym->st_info) == STT_OBJECT;
}

struct named {
	const char *name;
	uint64_t value;
};

static int is_called(void *ctx, const char *name, const GElf_Sym *sym)
{
	struct named *n = ctx;

	n->value = sym->st_value;
	return is_object(name, sym) && !strcmp(name, n->name);
}

/* Opens the file of @m and finds its load bias.  Return: NULL if it has none. */
static Elf *open_module(struct image *img, const struct image_map *m, int *fd, uint64_t *bias)
{
	Elf *elf;

	*fd = image_open_file(img, m);
	if (*fd < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_begin(*fd, ELF_C_READ_MMAP, NULL);
	if (elf && load_bias(img, elf, m, bias))
		return elf;
	elf_end(elf);
	close(*fd);
	return NULL;
}

bool object_find(struct image *img, const char *name, uint64_t *addr)
{
	struct named n = {.name = name};
	bool found = false;

	vec_for_each (&img->maps, m) {
		uint64_t bias;
		Elf *elf;
		int fd;

		/* Only executable maps: about one for each module. */
		elf = m->exec && !found ? open_module(img, m, &fd, &bias) : NULL;
		if (!elf)
			continue;
		found = starts_each_symbol(elf, is_called, &n);
		if (found)
			*addr = n.value + bias;
		elf_end(elf);
		close(fd);
	}
	return found;
}
