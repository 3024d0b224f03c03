/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inject/blob.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include "formats/session.h"

#define PAGE 4096ull

extern const uint8_t agent_elf[], agent_elf_end[];

static const char *const entry_name[BLOB_ENTRIES] = {
    [SS_HOOK_ALLOC] = "ag_entry_alloc",
    [SS_HOOK_POSIX_MEMALIGN] = "ag_entry_posix_memalign",
    [SS_HOOK_ALLOC_THROW] = "ag_entry_alloc_throw",
    [SS_HOOK_FREE] = "ag_entry_free",
    [SS_HOOK_REALLOC] = "ag_entry_realloc",
    [SS_HOOK_XALLOCX] = "ag_entry_xallocx",
    [SS_HOOK_FREE_THROUGH] = "ag_entry_free_through",
    [SS_HOOK_MMAP] = "ag_entry_mmap",
    [SS_HOOK_MUNMAP] = "ag_entry_munmap",
    [SS_HOOK_MREMAP] = "ag_entry_mremap",
    [SS_HOOK_SHMAT] = "ag_entry_shmat",
    [SS_HOOK_SHMDT] = "ag_entry_shmdt",
    [SS_HOOK_MALLOPT] = "ag_entry_mallopt",
    [SS_HOOK_PRCTL] = "ag_entry_prctl",
    [BLOB_ZERO_ALLOC] = "ag_entry_zero_alloc",
    [BLOB_FREE_TRACED] = "ag_entry_free_traced",
};

/* Entries for sampling mode; the other kinds use entry_name. */
static const char *const sample_name[BLOB_ENTRIES] = {
    [SS_HOOK_ALLOC] = "ag_entry_sample_alloc",
    [SS_HOOK_POSIX_MEMALIGN] = "ag_entry_sample_posix_memalign",
    [SS_HOOK_ALLOC_THROW] = "ag_entry_sample_alloc_throw",
    [SS_HOOK_FREE] = "ag_entry_sample_free",
    [SS_HOOK_REALLOC] = "ag_entry_sample_realloc",
    [SS_HOOK_XALLOCX] = "ag_entry_sample_xallocx",
    [SS_HOOK_FREE_THROUGH] = "ag_entry_sample_free",
    [BLOB_LEAF_MALLOC] = "ag_entry_sample_malloc",
    [BLOB_LEAF_CALLOC] = "ag_entry_sample_calloc",
};

static void find_entries(struct blob *b)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(b->elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(b->elf, sh.sh_link, sym.st_name);

			for (int k = 0; name && k < BLOB_ENTRIES; k++) {
				if (entry_name[k] && !strcmp(name, entry_name[k]))
					b->entry[k] = sym.st_value;
				if (sample_name[k] && !strcmp(name, sample_name[k]))
					b->sample_entry[k] = sym.st_value;
			}
			if (name && !strcmp(name, "ag_gate"))
				b->mapped_length = sym.st_value;
		}
	}
}

int blob_open(struct blob *b)
{
	size_t n;

	memset(b, 0, sizeof(*b));
	elf_version(EV_CURRENT);
	/* cppcheck-suppress comparePointers ; both are of one object, agent_blob.S */
	b->elf = elf_memory((char *)agent_elf, (size_t)(agent_elf_end - agent_elf));
	if (!b->elf || elf_getphdrnum(b->elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(b->elf, (int)i, &ph) && ph.p_type == PT_LOAD) {
			b->text = agent_elf + ph.p_offset;
			b->text_length = ph.p_filesz;
		}
	}
	find_entries(b);
	for (int k = 0; k < BLOB_ENTRIES; k++) {
		/* Offset 0 is padding: agent-entry.S begins with ag_original. */
		if ((entry_name[k] && !b->entry[k]) || (sample_name[k] && !b->sample_entry[k]))
			return -ENOEXEC;
		if (!sample_name[k])
			b->sample_entry[k] = b->entry[k];
	}
	return b->text && b->mapped_length >= b->text_length && !(b->mapped_length % PAGE)
		   ? 0
		   : -ENOEXEC;
}

void blob_close(struct blob *b)
{
	elf_end(b->elf);
	b->elf = NULL;
}
