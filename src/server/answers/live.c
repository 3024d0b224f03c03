/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "export/json.h"
#include "export/json_stack.h"
#include "export/lists/view.h"
#include "lib/json_gen.h"
#include "model/filter/pattern.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"
#include "top/table.h"
#include "top/top.h"

#define USUAL_ROWS 50

const struct parameter live_groups_parameters[] = {
    {"by", PARAMETER_WORD, 0, top_by_words},
    {"filter", PARAMETER_REGEX, 0, NULL},
    LIST_PARAMETERS(top_sort_words),
    FRAME_PARAMETERS,
    {0},
};

static void json_double(yajl_gen g, const char *key, double v)
{
	json_name(g, key);
	yajl_gen_double(g, v);
}

/* ------------------------------------------------------------------ sums -- */

/* What changed a second, over the last looks. */
static void write_rates(yajl_gen g, const struct running *l, const struct model *m)
{
	const struct past *p = running_past(l);
	const struct past_moment *first = past_first(p);
	double span = past_span(p);
	struct past_sum now = past_of_group(&m->sums.total);

	if (!first || span <= 0)
		return;
	json_double(g, "growth_per_second",
		    (double)(int64_t)(now.live_bytes - first->total.live_bytes) / span);
	json_double(g, "allocations_per_second",
		    (double)(now.allocations - first->total.allocations) / span);
	json_double(g, "allocated_bytes_per_second",
		    (double)(now.allocated_bytes - first->total.allocated_bytes) / span);
}

static void write_look(yajl_gen g, struct running *l)
{
	struct model *m = running_model(l);
	const struct group *t = &m->sums.total;
	const struct feed_state *s = running_state(l);
	size_t samples = m->facts.samples.n;

	yajl_gen_map_open(g);
	json_moment(g, m, "timestamp", m->facts.end_ns);
	json_number(g, "live_bytes", t->live_bytes);
	json_number(g, "live_blocks", t->live_blocks);
	json_number(g, "allocations", t->allocations);
	json_number(g, "allocated_bytes", t->allocated_bytes);
	json_number(g, "frees", t->frees);
	json_number(g, "stacks", m->stacks.n - 1);
	json_known(g, "resident_bytes", samples ? m->facts.samples.at[samples - 1].rss : 0);
	write_rates(g, l, m);
	json_boolean(g, "estimated", model_is_estimated(m));
	json_double(g, "live_bytes_error", group_error(t->variance_live));
	json_number(g, "lost_events", mp_losses_events(&m->facts.losses));
	json_number(g, "thinned_allocations", m->facts.losses.thinned);
	json_number(g, "behind_ns", s->behind_ns);
	json_boolean(g, "paused", s->paused);
	json_boolean(g, "ended", running_ended(l));
	yajl_gen_map_close(g);
}

int answer_live(struct answer *a, struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	write_look(g, a->live);
	return answer_end(a, g, 0, err);
}

int live_look_event(struct running *l, char **text, size_t *n)
{
	FILE *out = open_memstream(text, n);
	yajl_gen g = out ? json_begin(out, false) : NULL;

	if (g) {
		fputs("event: look\ndata: ", out);
		write_look(g, l);
		yajl_gen_free(g);
		fputs("\n\n", out);
	}
	if (out && !fclose(out) && g)
		return 0;
	free(*text);
	return -ENOMEM;
}

/* ------------------------------------------------------------------ timeline -- */

static uint64_t value_of(const struct running_point *p, uint32_t column)
{
	const uint64_t value[] = {p->live_bytes, p->live_blocks, p->allocations, p->allocated_bytes,
				  p->resident_bytes};

	return value[column];
}

int answer_live_timeline(struct answer *a, struct mp_err *err)
{
	static const char *const names[] = {"live_bytes", "live_blocks", "allocations",
					    "allocated_bytes", "resident_bytes"};
	long long start_ms = (long long)(a->m->info.start_unix_ns / 1000000);
	uint32_t n;
	const struct running_point *p = running_points(a->live, &n);
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_name(g, "xs");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; i < n; i++)
		yajl_gen_integer(g, start_ms + (long long)(p[i].time_ns / 1000000));
	yajl_gen_array_close(g);
	for (uint32_t column = 0; column < sizeof(names) / sizeof(names[0]); column++) {
		json_name(g, names[column]);
		yajl_gen_array_open(g);
		for (uint32_t i = 0; i < n; i++)
			yajl_gen_integer(g, (long long)value_of(&p[i], column));
		yajl_gen_array_close(g);
	}
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

/* ------------------------------------------------------------------ groups -- */

static void write_row(struct answer *a, yajl_gen g, const struct table_row *r, bool has_live)
{
	yajl_gen_map_open(g);
	json_text(g, "name", r->at.function);
	json_text(g, "library", r->at.library);
	json_text(g, "source", r->at.source);
	json_known(g, "line", r->at.line);
	json_known(g, "thread", r->tid);
	json_number(g, "stacks", r->stacks);
	if (has_live) {
		json_number(g, "live_bytes", r->live_bytes);
		json_number(g, "live_blocks", r->live_blocks);
		json_double(g, "live_bytes_error", r->live_error);
		json_double(g, "growth_per_second", r->growth);
	}
	json_double(g, "allocations_per_second", r->allocations);
	json_double(g, "allocated_bytes_per_second", r->allocated_bytes);
	json_name(g, "temporary_share");
	if (r->temporary < 0)
		yajl_gen_null(g);
	else
		yajl_gen_double(g, r->temporary);
	json_number(g, "allocations", r->total_allocations);
	json_number(g, "allocated_bytes", r->total_bytes);
	/* The stack of its stacks that has most. */
	if (r->stack)
		frames_backtrace(a, g, r->stack);
	yajl_gen_map_close(g);
}

static int write_table(struct answer *a, const struct table *t, struct mp_err *err)
{
	struct view v;
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	call_view(a->call, &v);
	v.count = call_number(a->call, "count", USUAL_ROWS);
	yajl_gen_map_open(g);
	json_moment(g, a->m, "timestamp", a->m->facts.end_ns);
	json_name(g, "rows");
	yajl_gen_array_open(g);
	for (uint64_t i = v.skip; i < view_end(&v, t->rows.n); i++)
		write_row(a, g, &t->rows.at[i], t->has_live);
	yajl_gen_array_close(g);
	json_number(g, "total_count", t->rows.n);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

int answer_live_groups(struct answer *a, struct mp_err *err)
{
	const char *filter = call_text(a->call, "filter");
	struct pattern *pattern = NULL;
	struct table_view v = {.by = (enum table_by)call_word(a->call, "by"),
			       .sort = (enum table_sort)call_word(a->call, "sort_by"),
			       .reverse =
				   call_text(a->call, "order") && !call_word(a->call, "order")};
	struct table t = {0};
	int ret = filter ? pattern_new("filter", filter, &pattern, err) : 0;

	v.filter = pattern;
	if (!ret)
		ret = frames_begin(a, err);
	if (!ret)
		ret = table_make(a->m, running_past(a->live), &v, &t, err);
	if (!ret)
		ret = write_table(a, &t, err);
	table_free(&t);
	pattern_free(pattern);
	return ret;
}

int answer_live_report(struct answer *a, struct mp_err *err)
{
	return answer_wrote(json_write(a->m, GROUP_BY_LINE, false, a->out), err);
}
