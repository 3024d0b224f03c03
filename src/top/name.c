/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/name.h"

#include <stdio.h>
#include <string.h>
#include "lib/path.h"
#include "lib/printable.h"
#include "model/model.h"

static const char *copy(const char *text, char buf[FIT_SIZE])
{
	if (text != buf)
		snprintf(buf, FIT_SIZE, "%s", text);
	return buf;
}

/* Is the function unknown, so that it is named by the library and an address? */
static bool names_library(const struct frame *f)
{
	size_t n = strlen(f->library);

	return !strncmp(f->function, f->library, n) && f->function[n] == '+';
}

const char *name_source(const struct frame *f, bool folders, char buf[FIT_SIZE])
{
	*buf = 0;
	if (f->source && f->line)
		snprintf(buf, FIT_SIZE, "%s:%u",
			 printable(folders ? f->source : path_base(f->source)), f->line);
	else if (f->library && !names_library(f))
		snprintf(buf, FIT_SIZE, "%s+0x%llx", printable(f->library),
			 (unsigned long long)f->offset);
	return buf;
}

/* "function  file.c:12": the function is cut first, to half of the columns at least. */
static const char *name_line(const struct frame *f, uint32_t columns, char buf[FIT_SIZE])
{
	const char *function = printable(f->function);
	char where[FIT_SIZE], cut_where[FIT_SIZE], cut[FIT_SIZE];
	uint32_t all = fit_columns(function), room;

	name_source(f, false, where);
	/* The function can already be named by the library and an offset. */
	if (!*where || !f->source)
		return copy(fit_middle(function, columns, cut), buf);
	room = columns / 2 > all ? columns - all : columns / 2;
	if (room < fit_columns(where) + 2 && columns - room > all)
		room = columns - all;
	room = room > 2 ? room - 2 : 0;
	copy(fit_middle(where, room, cut_where), where);
	function = fit_middle(function, columns - fit_columns(where) - 2, cut);
	snprintf(buf, FIT_SIZE, "%.*s  %.*s", FIT_SIZE / 2, function, FIT_SIZE / 2 - 3, where);
	return buf;
}

/* Does a library's function that the site called say what it allocated for? */
static bool tells(const struct shown_frame *f)
{
	static const char operators[] = "operator ";

	return f->frames > 1 && strncmp(f->at.function, operators, strlen(operators)) != 0;
}

/* "site < caller < its caller", cut at the end by the one who shows it. */
static const char *name_stack(struct model *m, const struct table_row *row, bool within,
			      uint32_t columns, char buf[FIT_SIZE])
{
	struct shown_stack s;
	uint32_t at;
	size_t used;

	if (shown_stack(m, row->stack, &s) || !s.n)
		return copy("(no stack)", buf);
	at = s.site < s.n ? s.site : s.n > 1;
	if (at && tells(&s.at[at - 1]))
		at--;
	else if (within && at + 1 < s.n)
		at++;
	copy(printable(s.at[at].at.function), buf);
	while (++at < s.n && fit_columns(buf) < columns) {
		used = strlen(buf);
		snprintf(buf + used, FIT_SIZE - used, " < %s", printable(s.at[at].at.function));
	}
	return buf;
}

const char *name_row(struct model *m, const struct table_row *row, enum table_by by, bool within,
		     bool source, uint32_t columns, char buf[FIT_SIZE])
{
	char cut[FIT_SIZE], thread[FIT_SIZE];

	switch (by) {
	case TABLE_STACK:
		return name_stack(m, row, within, columns, buf);
	case TABLE_LIBRARY:
		return copy(fit_middle(row->at.library ? printable(row->at.library) : "(none)",
				       columns, cut),
			    buf);
	case TABLE_THREAD:
		snprintf(thread, sizeof(thread), "%s (%u)", printable(row->at.function), row->tid);
		return copy(fit_middle(thread, columns, cut), buf);
	case TABLE_LINE:
		if (source)
			return name_line(&row->at, columns, buf);
		/* fallthrough */
	default:
		return copy(fit_middle(printable(row->at.function), columns, cut), buf);
	}
}
