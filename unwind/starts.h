/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions that an ELF file names. */
#ifndef UNWIND_STARTS_H
#define UNWIND_STARTS_H

#include <gelf.h>
#include <stdint.h>

/* Order of addresses, for qsort(3); also of records that begin with one. */
int starts_by_value(const void *a, const void *b);

/* Calls @fn for every function in the symbol tables until it returns other than 0, and returns
 * that. */
typedef int symbol_fn(void *ctx, const char *name, const GElf_Sym *sym);
int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx);

#endif
