/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds the compact unwind table of an ELF file of any architecture from .eh_frame, .debug_frame
 * and, for code without these, other sources.  Works on a file or a memory image, independent of
 * any process.
 */
#ifndef UNWIND_BUILD_H
#define UNWIND_BUILD_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * unwind_table_build() - build the table of all code of an ELF image
 * @elf: file or memory image (elf_memory() of the vDSO); stays the caller's
 * @debug: separate debug file with .debug_frame, or NULL
 * Start code of a program or thread without CFI (musl) counts as outermost.
 * Return: 0 (n can be 0: no information), or -ENOMEM/-EINVAL.
 */
int unwind_table_build(Elf *elf, Elf *debug, struct rule_set *set, struct unwind_table *table);

#endif
