/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/elf_arch.h"

#include <gelf.h>

const struct arch *elf_arch(Elf *elf)
{
	GElf_Ehdr eh;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return NULL;
	return arch_for_elf(eh.e_ident[EI_CLASS], eh.e_ident[EI_DATA], eh.e_machine);
}
