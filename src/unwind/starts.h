/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Enumerates the symbols of an ELF file. */
#ifndef UNWIND_STARTS_H
#define UNWIND_STARTS_H

#include <gelf.h>
#include <stdint.h>

typedef int symbol_fn(void *ctx, const char *name, const GElf_Sym *sym);
/* Calls @fn for every symbol in the symbol tables until it returns other than 0.  @name: "" if it
 * has none.  Return: that value, or 0. */
int starts_each_symbol(Elf *elf, symbol_fn *fn, void *ctx);
/* The same for functions that are defined in the file. */
int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx);

#endif
