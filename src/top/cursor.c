/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/cursor.h"

static void select_row(struct cursor *c, const struct table *t, uint32_t index)
{
	c->index = index;
	if (index < t->rows.n)
		c->key = t->rows.at[index].key;
}

void cursor_follow(struct cursor *c, const struct table *t)
{
	uint32_t found = c->chosen ? table_find(t, c->key) : 0;

	if (found < t->rows.n)
		select_row(c, t, found);
	else if (c->index >= t->rows.n)
		c->index = t->rows.n ? (uint32_t)t->rows.n - 1 : 0;
}

void cursor_move(struct cursor *c, const struct table *t, int64_t rows)
{
	int64_t to = (int64_t)c->index + rows;

	if (to >= (int64_t)t->rows.n)
		to = (int64_t)t->rows.n - 1;
	if (to < 0)
		to = 0;
	c->chosen = to > 0 || rows > 0;
	select_row(c, t, (uint32_t)to);
}

void cursor_scroll(struct cursor *c, const struct table *t, uint32_t rows)
{
	if (c->index < c->first)
		c->first = c->index;
	if (rows && c->index >= c->first + rows)
		c->first = c->index - rows + 1;
	/* No empty rows at the end while there are others above. */
	if (c->first && c->first + rows > t->rows.n)
		c->first = t->rows.n > rows ? (uint32_t)t->rows.n - rows : 0;
}

const struct table_row *cursor_row(const struct cursor *c, const struct table *t)
{
	return c->index < t->rows.n ? &t->rows.at[c->index] : NULL;
}
