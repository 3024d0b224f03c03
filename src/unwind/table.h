/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A compact unwind table: which rule is valid from which address on. */
#ifndef UNWIND_TABLE_H
#define UNWIND_TABLE_H

#include <stdint.h>

/* Rows sorted by pc (ELF virtual address).  A row is valid up to the pc of the next one. */
struct unwind_table {
	uint64_t *pc;
	uint16_t *rule; /* 0: no rule from here on */
	uint32_t n, cap;
};

void unwind_table_free(struct unwind_table *table);
/* Return: the rule id at ELF address @pc, 0 if none. */
uint16_t unwind_table_find(const struct unwind_table *table, uint64_t pc);

/* Appends a row.  A row at the last row's address replaces that one; a row at a lower address is
 * ignored.  Return: 0 or -ENOMEM. */
int unwind_table_add(struct unwind_table *t, uint64_t pc, uint32_t rule);
/* Merges the rows of @b into @a where @a has none.  Return: 0, or -ENOMEM with @a unchanged. */
int unwind_table_merge(struct unwind_table *a, const struct unwind_table *b);

#endif
