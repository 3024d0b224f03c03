/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include "top/keys.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>
#include "top/actions.h"
#include "top/feed.h"
#include "top/name.h"
#include "top/screen.h"
#include "top/state.h"

#define ESCAPE	27
#define CTRL(c) ((c)&31)
#define DELETE	127
#define PAGE	(screen_height() > 8 ? (int64_t)screen_height() - 6 : 1)
#define FAR	INT32_MAX
#define WITHIN	100 /* columns of the name of a place whose stacks are shown */

/* Keys that mean the same: a special one, and characters. */
static bool is(const struct screen_key *k, int special, const char *characters)
{
	if (k->special)
		return k->code == (uint32_t)special;
	return k->code && k->code < DELETE && strchr(characters, (int)k->code);
}

static bool is_enter(const struct screen_key *k)
{
	return is(k, KEY_ENTER, "\r\n");
}

static bool is_back(const struct screen_key *k)
{
	return is(k, KEY_LEFT, "\033\b") || is(k, KEY_BACKSPACE, "") ||
	       (!k->special && k->code == DELETE);
}

/* Return: by how many lines the key moves; 0: it does not. */
static int64_t moves(const struct screen_key *k)
{
	if (is(k, KEY_UP, "k"))
		return -1;
	if (is(k, KEY_DOWN, "j"))
		return 1;
	if (is(k, KEY_PPAGE, ""))
		return -PAGE;
	if (is(k, KEY_NPAGE, ""))
		return PAGE;
	if (is(k, KEY_HOME, "g"))
		return -FAR;
	return is(k, KEY_END, "G") ? FAR : 0;
}

static void scroll_text(uint32_t *first, int64_t lines)
{
	int64_t to = (int64_t)*first + lines;

	/* Drawing limits it to what there is. */
	*first = to < 0 ? 0 : to > FAR ? FAR : (uint32_t)to;
}

static void press_in_prompt(struct top *t, const struct screen_key *k)
{
	struct prompt *p = &t->prompt;

	if (p->what == PROMPT_REPLACE) {
		if (is(k, -1, "yY"))
			act_on_prompt(t);
		else
			top_say(t, "nothing was written");
		p->what = PROMPT_NONE;
		return;
	}
	if (is_enter(k))
		act_on_prompt(t);
	else if (!k->special && k->code == ESCAPE)
		p->what = PROMPT_NONE;
	else if (!k->special && k->code == CTRL('u'))
		*p->text = 0;
	else if (is_back(k))
		prompt_backspace(p);
	else if (!k->special)
		prompt_add(p, k->code);
}

static void set_by(struct top *t, enum table_by by)
{
	t->view.within = false;
	t->view.by = by;
	t->cursor = (struct cursor){0};
	top_rebuild(t);
}

static void set_sort(struct top *t, int step)
{
	do
		t->view.sort =
		    (enum table_sort)(((int)t->view.sort + step + TABLE_SORTS) % TABLE_SORTS);
	while (t->view.sort == TABLE_SINCE_MARK && !t->past.marked);
	top_rebuild(t);
}

/* Shows the stacks of the selected place, or the frames of the selected stack. */
static void open_row(struct top *t)
{
	const struct table_row *r = cursor_row(&t->cursor, &t->table);

	if (!r)
		return;
	if (t->view.by == TABLE_THREAD) {
		top_say(t, "a thread has no stacks of its own in the sums of a recording");
		return;
	}
	if (t->view.by == TABLE_STACK) {
		t->stack = (struct top_stack){.row = *r, .every = t->o->full};
		t->screen = TOP_STACK;
		return;
	}
	name_row(feed_model(t->feed), r, t->view.by, false, false, WITHIN, t->within);
	t->outer_cursor = t->cursor;
	t->outer_cursor.chosen = true;
	t->view.within = true;
	t->view.of = t->view.by;
	t->view.key = r->key;
	t->view.by = TABLE_STACK;
	t->cursor = (struct cursor){0};
	top_rebuild(t);
}

static void go_back(struct top *t)
{
	if (!t->view.within)
		return;
	t->view.within = false;
	t->view.by = t->view.of;
	t->cursor = t->outer_cursor;
	top_rebuild(t);
}

static void press_in_table(struct top *t, const struct screen_key *k)
{
	int64_t lines = moves(k);

	if (lines)
		cursor_move(&t->cursor, &t->table, lines);
	else if (is_enter(k) || is(k, KEY_RIGHT, ""))
		open_row(t);
	else if (is_back(k))
		go_back(t);
	else if (is(k, -1, "12345"))
		set_by(t, (enum table_by)(k->code - '1'));
	else if (is(k, -1, "\t"))
		set_by(t,
		       t->view.within ? t->view.of : (enum table_by)((t->view.by + 1) % TABLE_BYS));
	else if (is(k, -1, "<,"))
		set_sort(t, -1);
	else if (is(k, -1, ">."))
		set_sort(t, 1);
	else if (is(k, -1, "r")) {
		t->view.reverse = !t->view.reverse;
		top_rebuild(t);
	} else if (is(k, -1, "/"))
		act_ask(t, PROMPT_FILTER);
}

static void press_in_stack(struct top *t, const struct screen_key *k)
{
	int64_t lines = moves(k);

	if (lines)
		scroll_text(&t->stack.first, lines);
	else if (is_back(k))
		t->screen = TOP_TABLE;
	else if (is(k, -1, "a")) {
		t->stack.every = !t->stack.every;
		t->stack.first = 0;
	}
}

static void press_in_help(struct top *t, const struct screen_key *k)
{
	int64_t lines = moves(k);

	if (lines)
		scroll_text(&t->help_first, lines);
	else if (is_back(k) || is_enter(k) || is(k, -1, "h?"))
		t->screen = t->before_help;
}

/* Keys that mean the same on each screen.  Return: false if it is none of them. */
static bool press_anywhere(struct top *t, const struct screen_key *k)
{
	if (is(k, -1, "q"))
		t->quit = true;
	else if (is(k, -1, "\014")) /* Ctrl-L */
		screen_forget();
	else if (t->screen == TOP_HELP)
		return false;
	else if (is(k, -1, "h?")) {
		t->before_help = t->screen;
		t->screen = TOP_HELP;
		t->help_first = 0;
	} else if (is(k, -1, " "))
		act_freeze(t);
	else if (is(k, -1, "m"))
		act_ask(t, PROMPT_MARK);
	else if (is(k, -1, "w"))
		act_ask(t, PROMPT_REPORT);
	else if (is(k, -1, "p"))
		act_pause(t);
	else if (is(k, -1, "s"))
		act_sample(t);
	else
		return false;
	return true;
}

void keys_press(struct top *t, const struct screen_key *k)
{
	*t->message = 0;
	if (t->prompt.what)
		press_in_prompt(t, k);
	else if (press_anywhere(t, k))
		return;
	else if (t->screen == TOP_TABLE)
		press_in_table(t, k);
	else if (t->screen == TOP_STACK)
		press_in_stack(t, k);
	else
		press_in_help(t, k);
}
