/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/draw.h"

#include <stdio.h>
#include <string.h>
#include "formats/session.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"
#include "top/cell.h"
#include "top/feed.h"
#include "top/fit.h"
#include "top/name.h"
#include "top/screen.h"
#include "top/state.h"

#define TEXT 160
#define WIDE 40 /* columns of a number that is not in a table */

static void draw_numbers(const struct top *t, uint32_t y)
{
	const struct table_row *r = &t->stack.row;
	const struct model *m = feed_model(t->feed);
	const bool estimated = m->info.sample_interval || r->live_error > 0;
	const bool rates = top_rates_estimated(t);
	char line[FIT_SIZE], number[CELL], other[CELL], live[TEXT], grown[TEXT], marked[TEXT] = "";
	char rate[TEXT], share[TEXT] = "", total[TEXT];
	int n;

	n = snprintf(live, sizeof(live), "live %s in %s",
		     cell_bytes(r->live_bytes, estimated, WIDE, number),
		     counted(r->live_blocks, "block"));
	if (r->live_error > 0)
		snprintf(live + n, sizeof(live) - (size_t)n, " +- %s",
			 human((uint64_t)r->live_error));
	snprintf(grown, sizeof(grown), "growth %s/s",
		 cell_change(r->growth, estimated || rates, WIDE, number));
	if (t->past.marked)
		snprintf(marked, sizeof(marked), "since mark %s",
			 cell_change((double)r->since_mark, estimated, WIDE, number));
	snprintf(rate, sizeof(rate), "%s allocations/s, %s/s",
		 cell_rate(r->allocations, rates, WIDE, number),
		 cell_bytes((uint64_t)r->allocated_bytes, rates, WIDE, other));
	if (r->temporary >= 0)
		snprintf(share, sizeof(share), "temporary %s", cell_share(r->temporary, number));
	snprintf(total, sizeof(total), "%s in all, %s", counted(r->total_allocations, "allocation"),
		 human(r->total_bytes));
	struct fit_part first[] = {{t->stack.gone ? "as it was:" : "", "", 1},
				   {live, NULL, 0},
				   {grown, NULL, 1},
				   {marked, NULL, 2}};
	struct fit_part second[] = {{rate, NULL, 0}, {share, NULL, 1}, {total, NULL, 2}};

	screen_put(y, 0, screen_width(), SCREEN_PLAIN,
		   fit_parts(first, sizeof(first) / sizeof(first[0]), screen_width(), line));
	screen_put(y + 1, 0, screen_width(), SCREEN_PLAIN,
		   fit_parts(second, sizeof(second) / sizeof(second[0]), screen_width(), line));
}

static void where_of(const struct shown_frame *f, bool folders, char where[FIT_SIZE])
{
	char runtimes[SHOWN_RUNTIMES];

	if (f->frames > 1)
		snprintf(where, FIT_SIZE, "%u frames of %s", f->frames,
			 shown_runtimes(f->runtimes, runtimes));
	else
		name_source(&f->at, folders, where);
	if (f->frames == 1 && f->at.is_inline)
		strncat(where, " (inlined)", FIT_SIZE - strlen(where) - 1);
}

static void draw_frame(const struct shown_frame *f, bool site, uint32_t y)
{
	const uint32_t width = screen_width(), from = 2;
	const char *function = printable(f->at.function);
	char where[FIT_SIZE], name[FIT_SIZE], place[FIT_SIZE], line[2 * FIT_SIZE];
	uint32_t room = width - from, taken;

	where_of(f, true, where);
	if (fit_columns(function) + fit_columns(where) + 2 > room)
		where_of(f, false, where);
	taken = fit_columns(where) + 2;
	if (taken > room / 2 && fit_columns(function) + taken > room)
		taken = fit_columns(function) < room / 2 ? room - fit_columns(function) : room / 2;
	if (site)
		screen_put(y, 0, 2, SCREEN_SITE, "> ");
	snprintf(line, sizeof(line), *where ? "%s  %s" : "%s%s",
		 fit_middle(function, room > taken ? room - taken : 0, name),
		 fit_middle(where, taken > 2 ? taken - 2 : 0, place));
	screen_put(y, from, room, site ? SCREEN_SITE : SCREEN_PLAIN, line);
}

static void draw_title(const struct top *t, const struct shown_stack *s, uint32_t frames,
		       uint32_t rows, uint32_t y)
{
	const struct model *m = feed_model(t->feed);
	const struct model_stack *of =
	    &m->stacks.at[t->stack.row.stack < m->stacks.n ? t->stack.row.stack : 0];
	const uint32_t last = t->stack.first + rows < s->n ? t->stack.first + rows : s->n;
	char title[TEXT], part[TEXT] = "";

	if (rows < s->n)
		snprintf(part, sizeof(part), ", lines %u to %u of %u", t->stack.first + 1, last,
			 s->n);
	snprintf(title, sizeof(title), "STACK of %s%s%s", counted(frames, "frame"),
		 of->n && !(of->flags & SS_STACK_COMPLETE) ? ", incomplete" : "", part);
	screen_put(y, 0, screen_width(), SCREEN_HEADER, title);
}

void draw_stack(struct top *t, struct draw_area a)
{
	struct model *m = feed_model(t->feed);
	const uint32_t top = a.from + 3, rows = a.to > top ? a.to - top : 0;
	struct shown_stack s;
	int ret = t->stack.every ? shown_every(m, t->stack.row.stack, &s)
				 : shown_stack(m, t->stack.row.stack, &s);

	if (ret)
		s.n = 0;
	draw_numbers(t, a.from);
	t->stack.most = s.n > rows ? s.n - rows : 0;
	if (t->stack.first > t->stack.most)
		t->stack.first = t->stack.most;
	draw_title(t, &s, shown_count(&s, 0, s.n), rows, a.from + 2);
	if (!s.n)
		screen_put(top, 0, screen_width(), SCREEN_PLAIN,
			   ret ? "out of memory" : "(no stack)");
	for (uint32_t i = 0; i < rows && t->stack.first + i < s.n; i++)
		draw_frame(&s.at[t->stack.first + i], t->stack.first + i == s.site, top + i);
}
