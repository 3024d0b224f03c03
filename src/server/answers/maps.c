/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "export/json_stack.h"
#include "export/lists/view.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"
#include "server/answers/map_filter.h"
#include "server/answers/map_list.h"

enum { BY_TIMESTAMP, BY_ADDRESS, BY_SIZE, BY_PEAK_RSS };
static const char *const sort_words[] = {"timestamp", "address", "size", "peak_rss", NULL};

const struct parameter maps_parameters[] = {MAP_FILTER_PARAMETERS,
					    LIST_PARAMETERS(sort_words),
					    FRAME_PARAMETERS,
					    {"id", PARAMETER_NUMBER, 0, NULL},
					    {"generate_graphs", PARAMETER_BOOL, 0, NULL},
					    {"with_regions", PARAMETER_BOOL, 0, NULL},
					    {"with_usage_history", PARAMETER_BOOL, 0, NULL},
					    {0}};
_Static_assert(sizeof(maps_parameters) / sizeof(maps_parameters[0]) <= CALL_VALUES + 1,
	       "call.h: CALL_VALUES");

/* A map that passes the filter. */
struct row {
	uint64_t key;
	uint32_t id;
};

struct rows {
	VEC(struct row) at;
	const struct map_list *maps;
};

/* ------------------------------------------------------------------ one map -- */

static void put_null(yajl_gen g, const char *key)
{
	json_name(g, key);
	yajl_gen_null(g);
}

static void put_source(struct answer *a, yajl_gen g, const char *key, const struct map_source *s,
		       uint64_t ns)
{
	json_name(g, key);
	yajl_gen_map_open(g);
	json_moment(g, a->m, "timestamp", ns);
	json_number(g, "thread", s->tid);
	frames_backtrace(a, g, s->stack);
	yajl_gen_map_close(g);
}

/* What maps and their regions have in common. */
static void put_range(yajl_gen g, const struct model *m, const struct map *map)
{
	json_address(g, map_address(m, map));
	json_moment(g, m, "timestamp", map->born_ns);
	json_number(g, "size", map->end - map->start);
}

static void put_kind(yajl_gen g, const struct map *map)
{
	json_boolean(g, "is_readable", map->prot & PROT_READ);
	json_boolean(g, "is_writable", map->prot & PROT_WRITE);
	json_boolean(g, "is_executable", map->prot & PROT_EXEC);
	if (map->source.known)
		json_boolean(g, "is_shared", map->flags & MAP_SHARED);
	else
		put_null(g, "is_shared");
	json_text(g, "name", map->name);
}

static void put_end(struct answer *a, yajl_gen g, const struct map *map)
{
	if (map->died_ns == MAP_LIVES)
		return;
	json_name(g, "deallocation");
	yajl_gen_map_open(g);
	json_timeval(g, "timestamp", a->m->info.start_unix_ns + map->died_ns);
	if (map->ended.known)
		put_source(a, g, "source", &map->ended, map->died_ns);
	yajl_gen_map_close(g);
}

/* A recording does not have the parts of a map over time, so it is one region. */
static void put_regions(struct answer *a, yajl_gen g, const struct map *map)
{
	json_name(g, "regions");
	yajl_gen_array_open(g);
	yajl_gen_map_open(g);
	put_range(g, a->m, map);
	if (map->died_ns != MAP_LIVES) {
		json_name(g, "deallocation");
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp", a->m->info.start_unix_ns + map->died_ns);
		json_name(g, "sources");
		yajl_gen_array_open(g);
		if (map->ended.known) {
			yajl_gen_map_open(g);
			json_number(g, "address", map_address(a->m, map));
			json_number(g, "length", map->end - map->start);
			put_source(a, g, "source", &map->ended, map->died_ns);
			yajl_gen_map_close(g);
		}
		yajl_gen_array_close(g);
		yajl_gen_map_close(g);
	}
	put_kind(g, map);
	put_null(g, "file_offset");
	put_null(g, "inode");
	put_null(g, "major");
	put_null(g, "minor");
	yajl_gen_map_close(g);
	yajl_gen_array_close(g);
}

static void put_uses(yajl_gen g, const struct model *m, const struct map *map)
{
	json_name(g, "usage_history");
	yajl_gen_array_open(g);
	vec_for_each (&map->uses, u) {
		yajl_gen_map_open(g);
		json_moment(g, m, "timestamp", u->time_ns);
		json_number(g, "address_space", u->size);
		json_number(g, "anonymous", u->anonymous);
		put_null(g, "shared_clean");
		put_null(g, "shared_dirty");
		put_null(g, "private_clean");
		put_null(g, "private_dirty");
		json_number(g, "swap", u->swap);
		json_number(g, "rss", u->rss);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void put_map(struct answer *a, yajl_gen g, const struct map *map, uint64_t id)
{
	yajl_gen_map_open(g);
	json_number(g, "id", id);
	put_range(g, a->m, map);
	if (map->source.known)
		put_source(a, g, "source", &map->source, map->born_ns);
	put_end(a, g, map);
	put_kind(g, map);
	if (map->uses.n)
		json_number(g, "peak_rss", map->peak_rss);
	else
		put_null(g, "peak_rss");
	put_null(g, "graph_preview_url");
	put_null(g, "graph_url");
	if (call_true(a->call, "with_regions"))
		put_regions(a, g, map);
	if (call_true(a->call, "with_usage_history"))
		put_uses(g, a->m, map);
	yajl_gen_map_close(g);
}

/* ------------------------------------------------------------------ the list -- */

static int ascending(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t key_of(const struct map *map, uint32_t sort)
{
	switch (sort) {
	case BY_ADDRESS:
		return map->start;
	case BY_SIZE:
		return map->end - map->start;
	case BY_PEAK_RSS:
		return map->peak_rss;
	default:
		return map->born_ns;
	}
}

/* "id" is the only condition if it is given. */
static int select_maps(struct answer *a, uint32_t sort, struct rows *r, struct mp_err *err)
{
	uint64_t id = call_number(a->call, "id", UINT64_MAX);
	struct map_filter f;
	int ret = 0;

	if (id != UINT64_MAX) {
		if (id < r->maps->at.n)
			ret = vec_push(&r->at, ((struct row){0, (uint32_t)id}));
		return ret ? answer_no_memory(err) : 0;
	}
	ret = map_filter_make(a, &f, err);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < r->maps->at.n && !ret; i++) {
		const struct map *map = &r->maps->at.at[i];

		if (map_filter_has(&f, map))
			ret = vec_push(&r->at, ((struct row){key_of(map, sort), i}));
	}
	map_filter_free(&f);
	if (ret)
		return answer_no_memory(err);
	vec_sort(&r->at, ascending);
	return 0;
}

static int put_list(struct answer *a, const struct rows *r, const struct view *v,
		    struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_name(g, "maps");
	yajl_gen_array_open(g);
	for (uint64_t i = v->skip; i < view_end(v, r->at.n); i++) {
		const struct row *row = &r->at.at[v->descending ? r->at.n - 1 - i : i];

		put_map(a, g, &r->maps->at.at[row->id], row->id);
	}
	yajl_gen_array_close(g);
	json_number(g, "total_count", r->at.n);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

int answer_maps(struct answer *a, struct mp_err *err)
{
	struct map_list maps;
	struct rows r = {.maps = &maps};
	struct view v;
	int ret = frames_begin(a, err);

	call_view(a->call, &v);
	if (!ret)
		ret = map_list_make(a->m, &maps, err);
	if (ret)
		return ret;
	ret = select_maps(a, v.sort, &r, err);
	if (!ret)
		ret = put_list(a, &r, &v, err);
	vec_free(&r.at);
	map_list_free(&maps);
	return ret;
}

/* ------------------------------------------------------------------ timeline -- */

static void put_series(yajl_gen g, const struct model *m, const char *key,
		       uint64_t (*value)(const struct model *m, const struct mp_sample *s))
{
	json_name(g, key);
	yajl_gen_array_open(g);
	vec_for_each (&m->facts.samples, s) {
		if (value)
			yajl_gen_integer(g, (long long)value(m, s));
		else
			yajl_gen_null(g);
	}
	yajl_gen_array_close(g);
}

static uint64_t unix_ms(const struct model *m, const struct mp_sample *s)
{
	return (m->info.start_unix_ns + s->time_ns) / 1000000u;
}

static uint64_t address_space(const struct model *m, const struct mp_sample *s)
{
	(void)m;
	return s->address_space;
}

static uint64_t rss(const struct model *m, const struct mp_sample *s)
{
	(void)m;
	return s->rss;
}

static uint64_t anonymous(const struct model *m, const struct mp_sample *s)
{
	(void)m;
	return s->anonymous;
}

static uint64_t swap(const struct model *m, const struct mp_sample *s)
{
	(void)m;
	return s->swap;
}

/* The kernel's sums for the process, read about every second, which have more than the looks at its
 * mappings do.  They do not say which pages are dirty. */
int answer_timeline_maps(struct answer *a, struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	put_series(g, a->m, "xs", unix_ms);
	put_series(g, a->m, "address_space", address_space);
	put_series(g, a->m, "rss", rss);
	put_series(g, a->m, "anonymous", anonymous);
	put_series(g, a->m, "dirty", NULL);
	put_series(g, a->m, "clean", NULL);
	put_series(g, a->m, "swap", swap);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}
