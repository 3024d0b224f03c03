/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/groups.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "export/json_stack.h"
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "model/model.h"

#define FRAMES 6

enum key {
	MIN_TIMESTAMP,
	MAX_TIMESTAMP,
	INTERVAL,
	ALLOCATED_COUNT,
	LEAKED_COUNT,
	LEAKED_SIZE,
	TEMPORARY_COUNT,
	PEAK_SIZE,
	SIZE,
	FIRST_SEEN_AT,
	KEYS,
};

/* The second half is for all allocations of the stack. */
const char *const group_keys[] = {
    "only_matched.min_timestamp",
    "only_matched.max_timestamp",
    "only_matched.interval",
    "only_matched.allocated_count",
    "only_matched.leaked_count",
    "only_matched.leaked_size",
    "only_matched.temporary_count",
    "only_matched.peak_size",
    "only_matched.size",
    "only_matched.max_total_usage_first_seen_at",
    "all.min_timestamp",
    "all.max_timestamp",
    "all.interval",
    "all.allocated_count",
    "all.leaked_count",
    "all.leaked_size",
    "all.temporary_count",
    "all.peak_size",
    "all.size",
    "all.max_total_usage_first_seen_at",
    NULL,
};

bool groups_sort_key(const char *text, uint32_t *sort)
{
	for (uint32_t i = 0; i < 2 * KEYS; i++) {
		if (!strcmp(text, group_keys[i])) {
			*sort = i;
			return true;
		}
	}
	return false;
}

const char *groups_sort_name(uint32_t sort)
{
	return sort < 2 * KEYS ? group_keys[sort] : NULL;
}

static uint64_t key_of(const struct group *g, enum key key)
{
	switch (key) {
	case MIN_TIMESTAMP:
		return g->first_ns;
	case MAX_TIMESTAMP:
		return g->last_ns;
	case INTERVAL:
		return g->last_ns - g->first_ns;
	case ALLOCATED_COUNT:
		return g->allocations;
	case LEAKED_COUNT:
		return g->live_blocks;
	case LEAKED_SIZE:
		return g->live_bytes;
	case TEMPORARY_COUNT:
		return g->temporary;
	case PEAK_SIZE:
		return g->peak_bytes;
	case SIZE:
		return g->allocated_bytes;
	default:
		return g->most_ns;
	}
}

const struct group *groups_all(const struct model *m, uint32_t id)
{
	return m->unfiltered.group ? &m->unfiltered.group[id] : &m->sums.group[id];
}

/* ------------------------------------------------------------------ order -- */

struct sort_key {
	uint64_t key;
	uint32_t id;
};

static int ascending(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Equal keys stay in the order of ids. */
static int descending(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

uint32_t *groups_order(const struct model *m, const struct view *v, uint64_t *n)
{
	struct sort_key *e = calloc(m->stacks.n, sizeof(*e));
	uint32_t *ids = calloc(m->stacks.n, sizeof(*ids));

	*n = 0;
	for (uint32_t id = 0; e && id < m->stacks.n; id++) {
		const struct group *g = v->sort < KEYS ? &m->sums.group[id] : groups_all(m, id);

		if (m->sums.group[id].allocations)
			e[(*n)++] = (struct sort_key){key_of(g, v->sort % KEYS), id};
	}
	if (*n)
		qsort(e, *n, sizeof(*e), v->descending ? descending : ascending);
	for (uint64_t i = 0; ids && i < *n; i++)
		ids[i] = e[i].id;
	if (!e) {
		free(ids);
		ids = NULL;
	}
	free(e);
	return ids;
}

/* ------------------------------------------------------------------ writing -- */

void groups_json_counts(yajl_gen g, const struct group *gr)
{
	json_number(g, "allocated_count", gr->allocations);
	json_number(g, "leaked_count", gr->live_blocks);
	json_number(g, "leaked_size", gr->live_bytes);
	json_number(g, "temporary_count", gr->temporary);
	json_number(g, "peak_size", gr->peak_bytes);
}

static void write_sums(yajl_gen g, const struct model *m, const char *name, const struct group *gr)
{
	json_name(g, name);
	yajl_gen_map_open(g);
	json_number(g, "size", gr->allocated_bytes);
	json_number(g, "usable_size", gr->usable_bytes);
	groups_json_counts(g, gr);
	json_moment(g, m, "min_timestamp", gr->first_ns);
	json_moment(g, m, "max_timestamp", gr->last_ns);
	json_timeval(g, "interval", gr->last_ns - gr->first_ns);
	json_moment(g, m, "max_total_usage_first_seen_at", gr->most_ns);
	yajl_gen_map_close(g);
}

static int write_json(struct model *m, const struct view *v, const uint32_t *ids, uint64_t n,
		      FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_name(g, "allocations");
	yajl_gen_array_open(g);
	for (uint64_t i = v->skip; i < view_end(v, n); i++) {
		yajl_gen_map_open(g);
		write_sums(g, m, "all", groups_all(m, ids[i]));
		write_sums(g, m, "only_matched", &m->sums.group[ids[i]]);
		json_number(g, "backtrace_id", ids[i]);
		json_backtrace(g, m, ids[i]);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	json_number(g, "total_count", n);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ferror(out) ? -EIO : 0;
}

static void write_row(struct model *m, uint32_t id, FILE *out)
{
	const struct group *g = &m->sums.group[id];
	char a[24], b[24], c[24];

	fprintf(out, "%6u  %10s %8llu  %10s %8llu  %10s  %8.3f  %8.3f\n", id,
		human_bytes(g->allocated_bytes, a), (unsigned long long)g->allocations,
		human_bytes(g->live_bytes, b), (unsigned long long)g->live_blocks,
		human_bytes(groups_all(m, id)->allocated_bytes, c), (double)g->first_ns / 1e9,
		(double)g->last_ns / 1e9);
	text_stack(m, id, FRAMES, "                  ", out);
}

static void write_text(struct model *m, const struct view *v, const uint32_t *ids, uint64_t n,
		       FILE *out)
{
	fprintf(out, "%s%6s  %10s %8s  %10s %8s  %10s  %8s  %8s%s\n", term_on(out, TERM_FAINT),
		"stack", "allocated", "blocks", "live", "blocks", "of all", "first s", "last s",
		term_off(out));
	for (uint64_t i = v->skip; i < view_end(v, n); i++)
		write_row(m, ids[i], out);
	text_rest(v, n, "stack", out);
}

int groups_write(struct model *m, const struct view *v, FILE *out)
{
	uint64_t n;
	uint32_t *ids = groups_order(m, v, &n);
	int ret = ids ? 0 : -ENOMEM;

	if (ids && v->json)
		ret = write_json(m, v, ids, n, out);
	else if (ids)
		write_text(m, v, ids, n, out);
	free(ids);
	return ret;
}
