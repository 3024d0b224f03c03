/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/lists/groups.h"
#include "export/json_stack.h"
#include "export/lists/view.h"
#include "model/model.h"
#include "server/answers/ending.h"
#include "server/answers/frames.h"
#include "server/recordings.h"

/* @url: of its graph; NULL: none. */
static void write_sums(const struct answer *a, yajl_gen g, const char *name, const struct group *gr,
		       const char *url)
{
	json_name(g, name);
	yajl_gen_map_open(g);
	json_number(g, "size", gr->allocated_bytes);
	json_number(g, "min_size", gr->min_size);
	json_number(g, "max_size", gr->max_size);
	json_number(g, "usable_size", gr->usable_bytes);
	json_moment(g, a->m, "min_timestamp", gr->first_ns);
	json_moment(g, a->m, "max_timestamp", gr->last_ns);
	json_timeval(g, "interval", gr->last_ns - gr->first_ns);
	groups_json_counts(g, gr);
	json_text(g, "graph_preview_url", url);
	json_text(g, "graph_url", url);
	json_moment(g, a->m, "max_total_usage_first_seen_at", gr->most_ns);
	yajl_gen_map_close(g);
}

static void write_group(struct answer *a, yajl_gen g, uint32_t id, const char *url)
{
	yajl_gen_map_open(g);
	write_sums(a, g, "all", groups_all(a->m, id), NULL);
	write_sums(a, g, "only_matched", &a->m->sums.group[id], url);
	frames_backtrace(a, g, id);
	yajl_gen_map_close(g);
}

/* Return: the address of the graph of stack @id with the call's filter, to be freed by the caller; NULL
 * when out of memory. */
static char *graph_url(const struct answer *a, uint32_t id)
{
	static const char backtraces[] = "backtraces=";
	const char *filter = a->call->filter_text;
	char *url = NULL;
	size_t size;
	FILE *out = open_memstream(&url, &size);

	if (!out)
		return NULL;
	fprintf(out, "/data/%s/export/plot?%s%u", a->recordings->at.at[a->call->recording].id,
		backtraces, id);
	while (filter && *filter) {
		size_t n = 1 + strcspn(filter + 1, "&");

		/* The group's stack is one of those that the filter names. */
		if (strncmp(filter + 1, backtraces, strlen(backtraces)) != 0)
			fwrite(filter, 1, n, out);
		filter += n;
	}
	if (!fclose(out))
		return url;
	free(url);
	return NULL;
}

static int write_list(struct answer *a, yajl_gen g, const uint32_t *ids, const struct view *v,
		      uint64_t n, struct mp_err *err)
{
	bool graphs = call_true(a->call, "generate_graphs");

	for (uint64_t i = v->skip; i < view_end(v, n) && !ferror(a->out); i++) {
		char *url = graphs ? graph_url(a, ids[i]) : NULL;

		if (graphs && !url)
			return answer_no_memory(err);
		write_group(a, g, ids[i], url);
		free(url);
	}
	return 0;
}

static int write_groups(struct answer *a, const uint32_t *ids, const struct view *v, uint64_t n,
			struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_name(g, "allocations");
	yajl_gen_array_open(g);
	ret = write_list(a, g, ids, v, n, err);
	yajl_gen_array_close(g);
	json_number(g, "total_count", n);
	answer_estimated(a, g);
	yajl_gen_map_close(g);
	return answer_end(a, g, ret, err);
}

int answer_groups(struct answer *a, struct mp_err *err)
{
	uint32_t *ids = NULL;
	struct view v;
	uint64_t n;
	int ret = frames_begin(a, err);

	if (ret)
		return ret;
	call_view(a->call, &v);
	ids = groups_order(a->m, &v, &n);
	ret = ids ? write_groups(a, ids, &v, n, err) : answer_no_memory(err);
	free(ids);
	return ret;
}
