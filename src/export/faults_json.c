/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include "export/faults.h"
#include "export/json.h"
#include "export/json_stack.h"
#include "export/lists/site_list.h"
#include "export/lists/stack_ends.h"
#include "export/lists/symbol_gaps.h"
#include "export/lists/timeline.h"
#include "model/model.h"

static void write_sums(yajl_gen g, const struct model *m, const struct group *gr)
{
	(void)m;
	json_number(g, "faults", gr->allocations);
	json_number(g, "bytes", gr->allocated_bytes);
	json_number(g, "major_faults", gr->major);
	json_number(g, "huge_faults", gr->huge);
	json_number(g, "huge_bytes", gr->huge_bytes);
}

static void write_totals(yajl_gen g, const struct model *m)
{
	json_name(g, "totals");
	yajl_gen_map_open(g);
	write_sums(g, m, &m->sums.total);
	json_number(g, "unsized_faults", m->sums.unsized);
	yajl_gen_map_close(g);
	json_name(g, "all");
	if (m->unfiltered.group) {
		yajl_gen_map_open(g);
		write_sums(g, m, &m->unfiltered.total);
		yajl_gen_map_close(g);
	} else {
		yajl_gen_null(g);
	}
}

static void write_losses(yajl_gen g, const struct model *m)
{
	json_name(g, "losses");
	yajl_gen_map_open(g);
	json_number(g, "lost_faults", mp_losses_events(&m->facts.losses));
	json_number(g, "left_out_faults", m->facts.losses.left_out_allocs);
	json_number(g, "stacks_total", m->facts.losses.stacks_total);
	json_number(g, "stacks_complete", m->facts.losses.stacks_complete);
	yajl_gen_map_close(g);
}

static void write_threads(yajl_gen g, const struct model *m)
{
	json_name(g, "threads");
	yajl_gen_array_open(g);
	vec_for_each (&m->tasks.threads, t) {
		yajl_gen_map_open(g);
		json_number(g, "thread", t->tid);
		json_text(g, "name", t->name);
		json_number(g, "faults", t->allocations);
		json_number(g, "bytes", t->allocated_bytes);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_timeline(yajl_gen g, const struct model *m)
{
	json_name(g, "timeline");
	yajl_gen_array_open(g);
	vec_for_each (&m->sums.timeline, p) {
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", p->time_ns);
		json_number(g, "faults", p->allocations);
		json_number(g, "bytes", p->allocated_bytes);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	timeline_looks(g, m);
}

static void write_groups(yajl_gen g, struct model *m, const struct places *p)
{
	json_name(g, "fault_groups");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		const struct group *gr = &m->sums.group[id];

		if (!gr->allocations)
			continue;
		yajl_gen_map_open(g);
		json_number(g, "backtrace_id", id);
		json_number(g, "site", p->of_stack[id]);
		write_sums(g, m, gr);
		json_timeval(g, "min_timestamp_relative", gr->first_ns);
		json_timeval(g, "max_timestamp_relative", gr->last_ns);
		json_backtrace(g, m, id);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

int faults_json(struct model *m, enum group_by by, FILE *out)
{
	yajl_gen g = json_begin(out, true);
	struct places p;

	if (!g)
		return -ENOMEM;
	if (places_find(m, by, COST_FAULTED, true, &p)) {
		yajl_gen_free(g);
		return -ENOMEM;
	}
	yajl_gen_map_open(g);
	json_info(g, m);
	json_number(g, "page_size", m->info.page_size);
	json_boolean(g, "user_only", m->info.user_only);
	write_totals(g, m);
	write_losses(g, m);
	stack_ends_json(g, m);
	symbol_gaps_json(g, m);
	write_threads(g, m);
	write_timeline(g, m);
	sites_json(g, m, &p, write_sums);
	write_groups(g, m, &p);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	places_free(&p);
	return ferror(out) ? -EIO : 0;
}
