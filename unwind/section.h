/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef UNWIND_SECTION_H
#define UNWIND_SECTION_H

#include <gelf.h>

/* The first section of that name that has bytes in the file.  Return: NULL: none; else with its
 * header in *@sh. */
Elf_Scn *elf_section(Elf *elf, const char *name, GElf_Shdr *sh);

#endif
