/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/state.h"

#include <stdarg.h>
#include <stdio.h>
#include "lib/printable.h"
#include "model/model.h"
#include "top/feed.h"

void top_say(struct top *t, const char *fmt, ...)
{
	char line[sizeof(t->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	snprintf(t->message, sizeof(t->message), "%s", printable(line));
}

bool top_rates_estimated(const struct top *t)
{
	return feed_model(t->feed)->info.sample_interval ||
	       (t->thinned && t->thinned_looks < PAST_MOMENTS);
}

void top_rebuild(struct top *t)
{
	struct mp_err err = {0};

	table_free(&t->table);
	if (table_make(feed_model(t->feed), &t->past, &t->view, &t->table, &err))
		top_say(t, "%s", err.what);
	cursor_follow(&t->cursor, &t->table);
	if (t->screen == TOP_STACK) {
		uint32_t i = table_find(&t->table, t->stack.row.key);

		t->stack.gone = i >= t->table.rows.n;
		if (!t->stack.gone)
			t->stack.row = t->table.rows.at[i];
	}
}
