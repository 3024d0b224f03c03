/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the functions of an ELF file start; table.c's own. */
#ifndef UNWIND_STARTS_H
#define UNWIND_STARTS_H

#include <gelf.h>
#include <stdint.h>
#include "lib/vec.h"

/* ELF addresses, ascending, each once; vec_free(&starts.at) when done. */
struct starts {
	VEC(uint64_t) at;
};

/* Order of addresses, for qsort(3); also of records that begin with one. */
int starts_by_value(const void *a, const void *b);
/* Of .eh_frame: by its search table, else by its FDEs.  Return: 0 or -ENOMEM. */
int starts_of_cfi(Elf *elf, struct starts *starts);
/* Of all functions in the symbol tables.  Return: 0 or -ENOMEM. */
int starts_of_symbols(Elf *elf, struct starts *starts);

/* Calls @fn for every function in the symbol tables until it returns other than 0, and returns
 * that. */
typedef int symbol_fn(void *ctx, const char *name, const GElf_Sym *sym);
int starts_each_function(Elf *elf, symbol_fn *fn, void *ctx);

#endif
