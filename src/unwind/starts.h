/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Enumerates the functions in the symbol tables of an ELF file. */
#ifndef UNWIND_STARTS_H
#define UNWIND_STARTS_H

#include <gelf.h>
#include <stdint.h>

/* Compares uint64_t values, for qsort(3); also for structs that begin with one. */
int starts_by_value(const void *a, const void *b);

/* Calls @fn for every function in the symbol tables until it returns other than 0.  Return: that
 * value, or 0. */
typedef int symbol_fn(void *ctx, const char *name, const GElf_Sym *sym);
int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx);

#endif
