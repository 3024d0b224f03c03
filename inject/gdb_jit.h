/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code that a program makes and tells debuggers of, by GDB's interface (GDB manual, "JIT
 * Compilation Interface"): a list of ELF images in its memory.  qemu does so for what it
 * translates, LLVM on request.
 */
#ifndef INJECT_GDB_JIT_H
#define INJECT_GDB_JIT_H

#include <libelf.h>
#include "attach/target.h"
#include "unwind/table.h"

/* Return: the ELF address of the list's head in this file, 0: it has none. */
uint64_t gdb_jit_descriptor(Elf *elf);

/**
 * gdb_jit_rows() - unwind rules of registered code
 * @descriptor: address of the list's head in the target, which may hold anything
 * @t: empty or with other rows; gets those between @start and @end
 * Return: 0 (also when nothing can be read) or -ENOMEM.
 */
int gdb_jit_rows(struct target *target, uint64_t descriptor, uint64_t start, uint64_t end,
		 struct rule_set *set, struct unwind_table *t);

#endif
