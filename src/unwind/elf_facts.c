/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/elf_facts.h"

#include <stddef.h>
#include "unwind/build_id.h"
#include "unwind/elf_arch.h"
#include "unwind/section.h"

#ifndef PT_ARM_EXIDX
#define PT_ARM_EXIDX (PT_LOPROC + 1)
#endif

static bool has_section(Elf *elf, const char *name)
{
	GElf_Shdr sh;

	return elf_section(elf, name, &sh) != NULL;
}

/* A file without section headers has its tables in segments. */
static bool has_segment(Elf *elf, uint32_t type)
{
	GElf_Phdr ph;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == type && ph.p_filesz)
			return true;
	}
	return false;
}

static bool is_arm(Elf *elf)
{
	const struct arch *arch = elf_arch(elf);

	return arch && arch->elf_machine == EM_ARM;
}

struct elf_facts elf_facts(Elf *elf)
{
	struct elf_facts f = {
	    .symtab = has_section(elf, ".symtab"),
	    .dynsym = has_section(elf, ".dynsym"),
	    .minidebug = has_section(elf, ".gnu_debugdata"),
	    .lines = has_section(elf, ".debug_info"),
	    .unwind = has_section(elf, ".eh_frame") || has_section(elf, ".debug_frame") ||
		      has_segment(elf, PT_GNU_EH_FRAME) ||
		      (is_arm(elf) && has_segment(elf, PT_ARM_EXIDX)),
	};

	f.build_id_len = elf_build_id(elf, f.build_id);
	return f;
}
