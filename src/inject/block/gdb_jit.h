/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * JIT code that a program registers for debuggers through GDB's interface (GDB manual, "JIT
 * Compilation Interface"): a list of ELF images in its memory.  qemu registers the code it
 * translates, LLVM does so on request.
 */
#ifndef INJECT_BLOCK_GDB_JIT_H
#define INJECT_BLOCK_GDB_JIT_H

#include <libelf.h>
#include "attach/target.h"
#include "unwind/rule_set.h"
#include "unwind/table.h"

/* Return: the ELF address of the list's head in this file, 0 if it has none. */
uint64_t gdb_jit_descriptor(Elf *elf);

/**
 * gdb_jit_rows() - unwind rows of registered code
 * @descriptor: address of the list's head in the target; its content is not trusted
 * @t: empty or with other rows; the rows between @start and @end are added
 * Return: 0 (also if nothing can be read) or -ENOMEM.
 */
int gdb_jit_rows(struct target *target, uint64_t descriptor, uint64_t start, uint64_t end,
		 struct rule_set *set, struct unwind_table *t);

#endif
