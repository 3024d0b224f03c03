/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The selected row of the table.  It stays on its row when the order changes, once the user has
 * chosen one; before that it is the first row. */
#ifndef TOP_CURSOR_H
#define TOP_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include "top/table.h"

struct cursor {
	bool chosen;
	uint64_t key;	/* of the row */
	uint32_t index; /* of the row, in the table */
	uint32_t first; /* row at the top of the screen */
};

/* Finds the row again in a new table.  If it is gone, the one now in its place is selected. */
void cursor_follow(struct cursor *c, const struct table *t);
/* Moves by @rows, as far as there are rows.  Above the first row the choice is given up. */
void cursor_move(struct cursor *c, const struct table *t, int64_t rows);
/* Scrolls so that the row is on a screen of @rows rows. */
void cursor_scroll(struct cursor *c, const struct table *t, uint32_t rows);
/* Return: the selected row; NULL: the table is empty. */
const struct table_row *cursor_row(const struct cursor *c, const struct table *t);

#endif
