/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/block/gdb_jit.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "unwind/build.h"
#include "unwind/rule_set.h"
#include "unwind/section.h"
#include "unwind/table.h"
#include "unwind/untabled.h"

#define NAME	    "__jit_debug_descriptor"
#define VERSION	    1
#define MAX_ENTRIES 64u /* entries of the list that are read */
#define MAX_IMAGE   (1u << 20)

/* Layout in the memory of a 64-bit program. */
struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct entry {
	uint64_t next, previous, image, size;
};

uint64_t gdb_jit_descriptor(Elf *elf)
{
	GElf_Shdr names, sh;
	Elf_Scn *scn = elf_section(elf, ".dynstr", &names);
	Elf_Data *d = scn ? elf_rawdata(scn, NULL) : NULL;
	GElf_Sym sym;

	if (!d || !d->d_buf || !memmem(d->d_buf, d->d_size, NAME, sizeof(NAME)))
		return 0;
	scn = elf_section(elf, ".dynsym", &sh);
	d = scn ? elf_getdata(scn, NULL) : NULL;
	for (int i = 0; d && gelf_getsym(d, i, &sym); i++) {
		const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);

		if (name && !strcmp(name, NAME) && sym.st_shndx != SHN_UNDEF)
			return sym.st_value;
	}
	return 0;
}

static bool has_rows_in(const struct unwind_table *t, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->rule[i] && t->pc[i] >= start && t->pc[i] < end)
			return true;
	}
	return false;
}

static int add_image(struct target *target, const struct entry *e, uint64_t start, uint64_t end,
		     struct rule_set *set, struct unwind_table *t)
{
	struct unwind_table rows = {0};
	char *image = e->size && e->size <= MAX_IMAGE ? malloc(e->size) : NULL;
	Elf *elf = NULL;
	int err = 0;

	if (image && !mem_read(&target->mem, e->image, image, e->size))
		elf = elf_memory(image, e->size);
	/* A damaged image has no rows. */
	if (elf && !unwind_table_build(elf, NULL, set, &rows)) {
		if (has_rows_in(&rows, start, end))
			err = unwind_table_merge(t, &rows);
		unwind_table_free(&rows);
	}
	elf_end(elf);
	free(image);
	return err;
}

int gdb_jit_rows(struct target *target, uint64_t descriptor, uint64_t start, uint64_t end,
		 struct rule_set *set, struct unwind_table *t)
{
	struct descriptor head;
	struct entry e;
	int err = 0;

	if (target->arch->word_size != 8 ||
	    mem_read(&target->mem, descriptor, &head, sizeof(head)) || head.version != VERSION)
		return 0;
	e.next = head.first;
	for (unsigned n = 0; e.next && n < MAX_ENTRIES && !err; n++) {
		if (mem_read(&target->mem, e.next, &e, sizeof(e)))
			break;
		err = add_image(target, &e, start, end, set, t);
	}
	return err;
}
