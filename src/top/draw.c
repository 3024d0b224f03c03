/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include "top/screen.h"
#include "top/state.h"

#define LEAST_WIDTH  40
#define LEAST_HEIGHT 8

void draw(struct top *t)
{
	struct draw_area a = {0, screen_height() - 1};
	int cursor;

	screen_clear();
	if (screen_width() < LEAST_WIDTH || screen_height() < LEAST_HEIGHT) {
		screen_put(0, 0, screen_width(), SCREEN_PLAIN, "too small (40x8); q quits");
		screen_show(-1);
		return;
	}
	if (t->screen != TOP_HELP)
		a.from = draw_head(t);
	if (t->screen == TOP_HELP)
		draw_help(t, a);
	else if (t->screen == TOP_STACK)
		draw_stack(t, a);
	else
		draw_table(t, a);
	cursor = draw_bottom(t);
	screen_show(cursor);
}
