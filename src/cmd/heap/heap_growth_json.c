/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON of memprof heap --growth and memprof heap diff: doc/heap-growth.schema.json. */
#include <errno.h>
#include <string.h>
#include "cmd/heap/heap_growth.h"
#include "lib/json_gen.h"

#define JSON_DEPTH 32
#define JSON_COUNT 100

/* A number that can have a fraction; null unless @known. */
static void write_real(yajl_gen g, const char *key, double v, bool known)
{
	char digits[40];
	int n = snprintf(digits, sizeof(digits), "%.9g", v);

	json_name(g, key);
	if (known)
		yajl_gen_number(g, digits, (size_t)n);
	else
		yajl_gen_null(g);
}

/* The trend of an amount, as members of the object that is open. */
static void write_trend(yajl_gen g, const struct heap_growth *all, const struct trend *bytes,
			const struct trend *blocks)
{
	json_text(g, "how", trend_text(bytes));
	json_integer(g, "change_bytes", bytes->change);
	json_integer(g, "change_blocks", blocks->change);
	write_real(g, "bytes_per_second", bytes->slope, all->same_process);
	write_real(g, "standard_error", bytes->error, all->same_process && all->n > 2);
}

static void write_amounts(yajl_gen g, const struct heap_growth *all, const struct growth_amount *at)
{
	json_name(g, "looks");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < all->n; i++) {
		if (!at[i].present) {
			yajl_gen_null(g);
			continue;
		}
		yajl_gen_map_open(g);
		json_number(g, "bytes", at[i].bytes);
		json_number(g, "blocks", at[i].blocks);
		json_number(g, "count", at[i].count);
		json_number(g, "own_bytes", at[i].own);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

/* Recursion is as deep as a look. */
static void write_line(yajl_gen g, const struct heap_growth *all, const struct growth_line *l,
		       uint32_t levels, uint32_t count)
{
	const struct look_line *like = l->like;
	uint32_t n = 0;
	uint64_t left = 0;

	yajl_gen_map_open(g);
	json_text(g, "kind", retained_kind_name(like->kind, like->holder));
	json_text(g, "name", like->name);
	json_text(g, "module", like->module);
	json_text(g, "source", like->source);
	json_number(g, "line", like->line);
	json_text(g, "reached_from", like->reached);
	json_number(g, "size", l->various ? 0 : like->size);
	json_boolean(g, "various", l->various);
	json_boolean(g, "unlisted", l->unlisted);
	write_trend(g, all, &l->bytes, &l->blocks);
	write_amounts(g, all, l->at);
	json_name(g, "children");
	yajl_gen_array_open(g);
	for (const struct growth_line *c = l->child; c; c = c->next) {
		if (!levels || n >= count) {
			left++;
			continue;
		}
		n++;
		write_line(g, all, c, levels - 1, count);
	}
	yajl_gen_array_close(g);
	json_number(g, "left_out", left);
	yajl_gen_map_close(g);
}

static void write_types(yajl_gen g, const struct heap_growth *all, const char *key,
			const growth_types *types, uint32_t count)
{
	json_name(g, key);
	yajl_gen_array_open(g);
	for (size_t i = 0; i < types->n && i < count; i++) {
		const struct growth_type *t = &types->at[i];

		yajl_gen_map_open(g);
		json_text(g, "name", t->like->name[0] ? t->like->name : NULL);
		json_text(g, "module", t->like->module);
		json_number(g, "size", t->various ? 0 : t->like->size);
		json_boolean(g, "various", t->various);
		json_boolean(g, "unlisted", t->unlisted);
		write_trend(g, all, &t->bytes, &t->blocks);
		write_amounts(g, all, t->at);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_looks(yajl_gen g, const struct heap_growth *all)
{
	json_name(g, "looks");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < all->n; i++) {
		const struct look *l = all->look[i];

		yajl_gen_map_open(g);
		write_real(g, "seconds", all->seconds[i], all->same_process);
		json_known(g, "unix_ns", l->clock_ns);
		json_known(g, "age_ns", l->age_ns);
		json_number(g, "pid", (uint64_t)l->pid);
		json_text(g, "build_id", l->build_id);
		json_text(g, "mode", l->mode);
		json_number(g, "pause_ns", l->pause_ns);
		json_boolean(g, "exact", l->exact);
		json_amount(g, "live", l->live_blocks, l->live_bytes);
		json_amount(g, "unreachable", l->unreached_blocks, l->unreached_bytes);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_budget(yajl_gen g, const struct heap_growth *all, const struct growth_request *q)
{
	static const char *const verdict[] = {
	    [GROWTH_WITHIN] = "within",
	    [GROWTH_ABOVE] = "above",
	    [GROWTH_NO_RATE] = "not certain",
	    [GROWTH_NO_TIME] = "no rate",
	};

	json_name(g, "budget");
	if (!q->has_budget) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	json_number(g, "bytes", q->budget.bytes);
	write_real(g, "seconds", q->budget.seconds, q->budget.seconds > 0);
	json_text(g, "verdict", verdict[growth_judge(all, &q->budget)]);
	yajl_gen_map_close(g);
}

int growth_json(const struct heap_growth *all, const struct growth_request *q, FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_text(g, "memprof_version", MEMPROF_VERSION);
	json_text(g, "program", all->look[0]->program);
	json_text(g, "name", all->look[all->n - 1]->name);
	json_boolean(g, "same_process", all->same_process);
	json_boolean(g, "same_build", all->same_build);
	write_looks(g, all);
	json_name(g, "live");
	yajl_gen_map_open(g);
	write_trend(g, all, &all->live_bytes, &all->live_blocks);
	yajl_gen_map_close(g);
	write_budget(g, all, q);
	json_name(g, "retained");
	write_line(g, all, all->all, q->depth ? q->depth + 1 : JSON_DEPTH,
		   q->count ? q->count : JSON_COUNT);
	write_types(g, all, "types", &all->types, q->count ? q->count : JSON_COUNT);
	write_types(g, all, "containers", &all->containers, q->count ? q->count : JSON_COUNT);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
