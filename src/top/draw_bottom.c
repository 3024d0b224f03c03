/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include <stdio.h>
#include <string.h>
#include "lib/human.h"
#include "lib/printable.h"
#include "top/fit.h"
#include "top/screen.h"
#include "top/state.h"

static int draw_prompt(const struct prompt *p)
{
	static const char *const label[] = {[PROMPT_FILTER] = "filter (empty: none): ",
					    [PROMPT_MARK] = "name of the mark: ",
					    [PROMPT_REPORT] = "report to (.json: JSON): ",
					    [PROMPT_REPLACE] = "exists; replace it (y, n)? "};
	const uint32_t width = screen_width(), row = screen_height() - 1;
	uint32_t from = fit_columns(label[p->what]);
	const char *text = p->text;
	char both[PROMPT_SIZE + 64];

	if (p->what == PROMPT_REPLACE) {
		snprintf(both, sizeof(both), "%s %s", printable(p->text), label[p->what]);
		text = fit_tail(both, width - 1);
		screen_put(row, 0, width, SCREEN_TITLE, text);
		return (int)fit_columns(text);
	}
	screen_put(row, 0, width, SCREEN_TITLE, label[p->what]);
	text = fit_tail(text, width - from - 1);
	screen_put(row, from, width - from, SCREEN_PLAIN, text);
	return (int)(from + fit_columns(text));
}

static const char *table_keys(const struct top *t, char line[FIT_SIZE])
{
	char filter[PROMPT_SIZE + 64] = "";

	if (*t->filter_text)
		snprintf(filter, sizeof(filter), "filter: %s (%s left out)", t->filter_text,
			 thousands(t->table.left_out));
	struct fit_part parts[] = {
	    {filter, NULL, 0},
	    {"q quit", NULL, 1},
	    {"? help", NULL, 1},
	    {"Enter open", NULL, 2},
	    {t->view.within ? "Left back" : "1-5 by", NULL, 3},
	    {"<> sort", NULL, 4},
	    {"/ filter", NULL, 5},
	    {"space freeze", NULL, 6},
	    {"m mark", NULL, 7},
	    {"w write", NULL, 8},
	    {"s sample", NULL, 9},
	    {"p pause", NULL, 10},
	};
	return fit_parts(parts, sizeof(parts) / sizeof(parts[0]), screen_width(), line);
}

/* The keys of a screen that is scrolled.  @more: another one; "": there is none. */
static const char *text_keys(const char *more, char line[FIT_SIZE])
{
	struct fit_part parts[] = {{"q quit", NULL, 0},
				   {"Left back", NULL, 1},
				   {more, NULL, 2},
				   {"up, down scroll", NULL, 3}};

	return fit_parts(parts, sizeof(parts) / sizeof(parts[0]), screen_width(), line);
}

int draw_bottom(const struct top *t)
{
	const uint32_t width = screen_width(), row = screen_height() - 1;
	char line[FIT_SIZE];

	if (t->prompt.what)
		return draw_prompt(&t->prompt);
	if (*t->message)
		screen_put(row, 0, width, SCREEN_TITLE, t->message);
	else if (*t->ended)
		screen_put(row, 0, width, SCREEN_BAD, t->ended);
	else if (t->screen == TOP_TABLE)
		screen_put(row, 0, width, SCREEN_PLAIN, table_keys(t, line));
	else if (t->screen == TOP_STACK)
		screen_put(row, 0, width, SCREEN_PLAIN,
			   text_keys(t->stack.every ? "a fewer frames" : "a every frame", line));
	else
		screen_put(row, 0, width, SCREEN_PLAIN, text_keys("", line));
	return -1;
}
