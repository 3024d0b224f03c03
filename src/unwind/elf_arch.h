/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef UNWIND_ELF_ARCH_H
#define UNWIND_ELF_ARCH_H

#include <libelf.h>
#include "arch/arch.h"

/* Return: the architecture of an ELF file, or NULL if memprof does not know it. */
const struct arch *elf_arch(Elf *elf);

#endif
