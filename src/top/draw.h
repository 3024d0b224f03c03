/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Puts the state on the screen, each part in a file of its own: draw_head.c, draw_table.c,
 * draw_stack.c, draw_help.c, draw_bottom.c. */
#ifndef TOP_DRAW_H
#define TOP_DRAW_H

#include <stdint.h>

struct top;

/* Draws everything. */
void draw(struct top *t);

/* Rows of the screen, from @from on, before @to. */
struct draw_area {
	uint32_t from, to;
};

/* Draws the lines at the top.  Return: their number. */
uint32_t draw_head(const struct top *t);
void draw_table(struct top *t, struct draw_area a);
void draw_stack(struct top *t, struct draw_area a);
void draw_help(struct top *t, struct draw_area a);
/* Draws the last line.  Return: the column of the cursor, -1: there is none. */
int draw_bottom(const struct top *t);

#endif
