/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include "lib/printable.h"
#include "model/model.h"
#include "top/cell.h"
#include "top/columns.h"
#include "top/feed.h"
#include "top/fit.h"
#include "top/name.h"
#include "top/screen.h"
#include "top/state.h"

/* What the cells of all rows have in common. */
struct cells {
	const struct top *t;
	struct columns columns;
	bool live, rates; /* live bytes of all; the rates of all: are estimates */
	bool source;	  /* there is a column for it */
};

static bool is_name(enum column what)
{
	return what == COLUMN_SITE || what == COLUMN_SOURCE || what == COLUMN_LIBRARY;
}

static void draw_header(const struct cells *c, uint32_t y)
{
	const struct table_view *v = &c->t->view;
	const bool ascending = (v->sort == TABLE_NAME) != v->reverse;
	const bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	const char *arrow = utf8 ? (ascending ? "\u2191" : "\u2193") : (ascending ? "^" : "v");

	screen_put(y, 0, screen_width(), SCREEN_HEADER, "");
	for (uint32_t i = 0; i < c->columns.n; i++) {
		const enum column what = c->columns.at[i].what;
		const uint32_t from = c->columns.at[i].from, width = c->columns.at[i].width;
		const bool sorted = what == columns_sorted(v->sort);
		const bool of = what == COLUMN_SITE && v->within;
		char whole[FIT_SIZE + 32], title[FIT_SIZE + 48], cut[FIT_SIZE];

		snprintf(whole, sizeof(whole), "%s%s%s", columns_title(what, v->by),
			 of ? "S OF " : "", of ? c->t->within : "");
		snprintf(title, sizeof(title), "%s%s",
			 fit_middle(whole, width > 1 ? width - 1 : 0, cut), sorted ? arrow : "");
		if (is_name(what))
			screen_put(y, from, width, sorted ? SCREEN_SORTED : SCREEN_HEADER, title);
		else
			screen_put_right(y, from, width, sorted ? SCREEN_SORTED : SCREEN_HEADER,
					 title);
	}
}

/* Formats a number of a row.  Return: @buf. */
static const char *number(const struct cells *c, enum column what, const struct table_row *r,
			  uint32_t width, char buf[CELL])
{
	const bool live = c->live || r->live_error > 0, rates = c->rates;

	if (!c->t->table.has_live && (what == COLUMN_LIVE || what == COLUMN_BLOCKS ||
				      what == COLUMN_GROWTH || what == COLUMN_SINCE_MARK))
		return strcpy(buf, "-");
	switch (what) {
	case COLUMN_LIVE:
		return cell_bytes(r->live_bytes, live, width, buf);
	case COLUMN_ERROR:
		return r->live_error > 0 ? cell_bytes((uint64_t)r->live_error, false, width, buf)
					 : strcpy(buf, "");
	case COLUMN_BLOCKS:
		return cell_count(r->live_blocks, live, width, buf);
	case COLUMN_GROWTH:
		return cell_change(r->growth, live || rates, width, buf);
	case COLUMN_SINCE_MARK:
		return c->t->past.marked ? cell_change((double)r->since_mark, live, width, buf)
					 : strcpy(buf, "-");
	case COLUMN_ALLOCATIONS:
		return cell_rate(r->allocations, rates, width, buf);
	case COLUMN_ALLOCATED:
		return cell_bytes((uint64_t)r->allocated_bytes, rates, width, buf);
	case COLUMN_TEMPORARY:
		return cell_share(r->temporary, buf);
	case COLUMN_TOTAL:
		return cell_count(r->total_allocations, live, width, buf);
	default:
		return cell_count(r->stacks, false, width, buf);
	}
}

static enum screen_style number_style(const struct cells *c, enum column what,
				      const struct table_row *r)
{
	double change = what == COLUMN_GROWTH	    ? r->growth
			: what == COLUMN_SINCE_MARK ? (double)r->since_mark
						    : 0;

	if (what == COLUMN_SINCE_MARK && !c->t->past.marked)
		return SCREEN_PLAIN;
	return change >= 1 ? SCREEN_GROWS : change <= -1 ? SCREEN_SHRINKS : SCREEN_PLAIN;
}

static const char *text_of(const struct cells *c, enum column what, const struct table_row *r,
			   uint32_t width, char buf[FIT_SIZE])
{
	struct model *m = feed_model(c->t->feed);
	char whole[FIT_SIZE];

	if (what == COLUMN_SITE)
		return name_row(m, r, c->t->view.by, c->t->view.within, !c->source, width, buf);
	if (what == COLUMN_SOURCE)
		return fit_middle(name_source(&r->at, true, whole), width, buf) == whole
			   ? strcpy(buf, whole)
			   : buf;
	snprintf(buf, FIT_SIZE, "%s", r->at.library ? printable(r->at.library) : "");
	return buf;
}

static void draw_row(const struct cells *c, const struct table_row *r, uint32_t y, bool selected)
{
	screen_put(y, 0, screen_width(), selected ? SCREEN_SELECTED : SCREEN_PLAIN, "");
	for (uint32_t i = 0; i < c->columns.n; i++) {
		const enum column what = c->columns.at[i].what;
		const uint32_t from = c->columns.at[i].from, width = c->columns.at[i].width;
		char text[FIT_SIZE], cell[CELL];

		if (is_name(what))
			screen_put(y, from, width, selected ? SCREEN_SELECTED : SCREEN_PLAIN,
				   text_of(c, what, r, width, text));
		else
			screen_put_right(y, from, width,
					 selected ? SCREEN_SELECTED : number_style(c, what, r),
					 number(c, what, r, width, cell));
	}
}

static void draw_empty(const struct top *t, uint32_t y)
{
	if (t->table.left_out)
		screen_put(y, 0, screen_width(), SCREEN_PLAIN,
			   "no row matches the filter; / and Enter clears it");
	else
		screen_put(y, 0, screen_width(), SCREEN_PLAIN,
			   "nothing is live, and nothing was allocated over the last looks");
}

void draw_table(struct top *t, struct draw_area a)
{
	const struct model *m = feed_model(t->feed);
	const struct columns_for wanted = {t->view.by, t->view.sort, t->past.marked,
					   m->sums.total.variance_live > 0};
	struct cells c = {
	    .t = t, .live = m->info.sample_interval != 0, .rates = top_rates_estimated(t)};
	const uint32_t rows = a.to > a.from + 1 ? a.to - a.from - 1 : 0;

	columns_choose(&wanted, screen_width(), &c.columns);
	for (uint32_t i = 0; i < c.columns.n; i++)
		c.source |= c.columns.at[i].what == COLUMN_SOURCE;
	draw_header(&c, a.from);
	cursor_scroll(&t->cursor, &t->table, rows);
	if (!t->table.rows.n)
		draw_empty(t, a.from + 1);
	for (uint32_t i = 0; i < rows && t->cursor.first + i < t->table.rows.n; i++) {
		const uint32_t index = t->cursor.first + i;

		draw_row(&c, &t->table.rows.at[index], a.from + 1 + i, index == t->cursor.index);
	}
}
