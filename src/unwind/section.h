/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef UNWIND_SECTION_H
#define UNWIND_SECTION_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Return: the first section called @name that has bytes in the file, with its header in *@sh;
 * NULL: none. */
Elf_Scn *elf_section(Elf *elf, const char *name, GElf_Shdr *sh);

/* Return: whether the section contains instructions.  If so, *@sh is its header and *@code its
 * bytes, which belong to the Elf. */
bool section_is_code(Elf_Scn *scn, GElf_Shdr *sh, const uint8_t **code);

#endif
