/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which files lack symbols: addresses in stacks without a function, or without a line. */
#ifndef MODEL_NAMES_SYMBOL_GAPS_H
#define MODEL_NAMES_SYMBOL_GAPS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "lib/vec.h"

struct model;

struct symbol_gap {
	const struct mp_module *module; /* one of the file's mappings */
	const char *library;		/* its name for reports */
	bool own;			/* not a library of the runtime (model/names/runtime.h) */
	uint64_t addresses;		/* different ones in stacks */
	uint64_t no_function, no_line;	/* number of them without */
	/* Allocated bytes of the stacks that contain such an address. */
	uint64_t bytes_no_function, bytes_no_line;
};

struct symbol_gaps {
	VEC(struct symbol_gap) list; /* by bytes without a function, then without a line */
	uint64_t bytes;		     /* of all stacks */
};

/* Finds the gaps of a recording that is complete: else names are looked up only when needed.
 * Return: 0 with @g filled, to be freed by vec_free(&g->list), or -ENOMEM.  Valid as long as @m. */
int symbol_gaps_find(const struct model *m, struct symbol_gaps *g);

#endif
