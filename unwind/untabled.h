/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of code that call frame information does not cover; table.c's own. */
#ifndef UNWIND_UNTABLED_H
#define UNWIND_UNTABLED_H

#include "unwind/table.h"

/* The next row; one at the last row's address replaces it, one before that is left out.
 * Return: 0 or -ENOMEM. */
int table_add_row(struct unwind_table *t, uint64_t pc, uint32_t rule);
/* Merges the rows of @b into @a where that has none.  Return: 0 or -ENOMEM, @a then unchanged. */
int table_merge(struct unwind_table *a, const struct unwind_table *b);

/**
 * untabled_rows() - by .ARM.exidx and by the code itself
 * @known: rows there are; their functions' starts are used
 * @t: empty; gets rows of all code, also of what @known has
 * Where both have something to say, .ARM.exidx decides what holds at calls, and the code, if it
 * comes to the same, where in the function that begins and ends to hold.
 * Return: 0 (also where the architecture needs none of it) or -ENOMEM.
 */
int untabled_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t);

#endif
