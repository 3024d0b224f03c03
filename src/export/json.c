/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "arch/arch.h"
#include "export/json_stack.h"
#include "export/lists/site_list.h"
#include "export/lists/stack_ends.h"
#include "export/lists/symbol_gaps.h"
#include "export/lists/timeline.h"
#include "formats/event.h"
#include "formats/file.h"
#include "lib/hex.h"
#include "model/losses.h"
#include "model/model.h"
#include "model/names/allocator.h"
#include "model/stack_order.h"
#include "model/sums/weight.h"

static void write_processes(yajl_gen g, const struct model *m)
{
	json_name(g, "processes");
	yajl_gen_array_open(g);
	vec_for_each (&m->tasks.processes, p) {
		yajl_gen_map_open(g);
		json_number(g, "pid", p->of.pid);
		json_text(g, "executable", p->of.executable);
		json_text(g, "cmdline", p->of.cmdline);
		json_timeval(g, "start", p->of.start_ns);
		json_timeval(g, "end", p->of.end_ns);
		json_number(g, "allocations", p->allocations);
		json_number(g, "allocated_bytes", p->allocated_bytes);
		json_number(g, "frees", p->frees);
		json_number(g, "leaked_count", p->live_blocks);
		json_number(g, "leaked_bytes", p->live_bytes);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

void json_info(yajl_gen g, const struct model *m)
{
	static const char *const reason[] = {"continues", "detached", "exited", "execed",
					     "time",	  "error",    "kept",	"pieced"};
	char id[33];

	json_text(g, "id", hex_text(m->info.id, sizeof(m->info.id), id));
	json_text(g, "memprof_version", m->info.memprof_version);
	json_text(g, "executable", m->info.executable);
	json_text(g, "called", m->info.called[0] ? m->info.called : NULL);
	json_text(g, "cmdline", m->info.cmdline);
	json_text(g, "architecture", arch_machine_name(m->info.machine));
	json_number(g, "pid", m->info.pid);
	json_text(g, "event", m->info.what == MP_PAGE_FAULTS ? "page-faults" : "allocations");
	json_text(g, "mode", m->info.mode ? "run" : "attach");
	json_number(g, "sample_interval", m->info.sample_interval);
	if (m->info.overhead_ppm)
		json_part(g, "overhead_budget", m->info.overhead_ppm);
	if (m->info.what == MP_ALLOCATIONS)
		json_number(g, "culled_below_ns", m->info.cull_ns);
	if (m->info.live_only)
		json_boolean(g, "live_only", true);
	if (m->info.piece)
		json_number(g, "piece", m->info.piece);
	json_boolean(g, "estimated", model_is_estimated(m));
	json_timeval(g, "timestamp", m->info.start_unix_ns);
	json_timeval(g, "runtime", m->facts.end_ns);
	json_text(g, "end_reason",
		  m->facts.has_finish && m->facts.finish.reason <= MP_END_PIECED
		      ? reason[m->facts.finish.reason]
		      : "unknown");
	json_boolean(g, "restored", m->facts.has_finish && m->facts.finish.restored);
	json_number(g, "attach_stop_ns", m->facts.finish.attach_stop_ns);
	json_number(g, "detach_stop_ns", m->facts.finish.detach_stop_ns);
	json_text(g, "truncated", m->source.truncated);
	if (m->tasks.processes.n)
		write_processes(g, m);
}

/* Writes what was thinned out; null if nothing was. */
static void write_thinning(yajl_gen g, const struct model *m)
{
	const struct thinned *t = &m->sums.thinned;

	json_name(g, "thinning");
	if (!m->facts.losses.thinned && !t->n) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	json_number(g, "thinned_allocations", m->facts.losses.thinned);
	json_number(g, "thinned_bytes", m->facts.losses.thinned_bytes);
	json_name(g, "periods");
	yajl_gen_array_open(g);
	for (const struct thinned_period *p = t->period; p < t->period + t->n; p++) {
		yajl_gen_map_open(g);
		json_timeval(g, "from", p->from_ns);
		json_timeval(g, "to", p->to_ns);
		json_number(g, "recorded_allocations", p->recorded);
		json_number(g, "represented_allocations", p->represented);
		json_number(g, "largest_weight", 1ull << p->most);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

/* For a recording with estimates: writes standard errors of the estimates. */
static void write_errors(yajl_gen g, const struct model *m, const struct group *gr)
{
	if (!model_is_estimated(m))
		return;
	json_number(g, "standard_error_allocations",
		    (uint64_t)llround(group_error(gr->variance_allocations)));
	json_number(g, "standard_error_allocated_bytes",
		    (uint64_t)llround(group_error(gr->variance_allocated)));
	json_number(g, "standard_error_leaked_count",
		    (uint64_t)llround(group_error(gr->variance_blocks)));
	json_number(g, "standard_error_leaked_bytes",
		    (uint64_t)llround(group_error(gr->variance_live)));
}

/* Writes a number that a recording of the live heap does not have: then it is null. */
static void call_number(yajl_gen g, const struct model *m, const char *name, uint64_t v)
{
	if (!m->info.live_only) {
		json_number(g, name, v);
		return;
	}
	json_name(g, name);
	yajl_gen_null(g);
}

/* Writes the sums without the filter; null if there is no filter. */
static void write_all(yajl_gen g, const struct model *m)
{
	json_name(g, "all");
	if (!m->unfiltered.group) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	call_number(g, m, "allocations", m->unfiltered.total.allocations);
	call_number(g, m, "allocated_bytes", m->unfiltered.total.allocated_bytes);
	json_number(g, "leaked_count", m->unfiltered.total.live_blocks);
	json_number(g, "leaked_bytes", m->unfiltered.total.live_bytes);
	json_number(g, "not_judged_count", m->doubts.unjudged_blocks);
	json_number(g, "not_judged_bytes", m->doubts.unjudged_bytes);
	json_number(g, "suppressed_stacks", m->suppressed.stacks);
	call_number(g, m, "suppressed_allocations", m->suppressed.sum.allocations);
	call_number(g, m, "suppressed_allocated_bytes", m->suppressed.sum.allocated_bytes);
	json_number(g, "suppressed_leaked_count", m->suppressed.sum.live_blocks);
	json_number(g, "suppressed_leaked_bytes", m->suppressed.sum.live_bytes);
	yajl_gen_map_close(g);
}

static void write_totals(yajl_gen g, const struct model *m)
{
	json_name(g, "totals");
	yajl_gen_map_open(g);
	write_errors(g, m, &m->sums.total);
	call_number(g, m, "events", m->counts.events);
	call_number(g, m, "allocations", m->sums.total.allocations);
	call_number(g, m, "allocated_bytes", m->sums.total.allocated_bytes);
	call_number(g, m, "allocated_usable_bytes", m->sums.total.usable_bytes);
	call_number(g, m, "frees", m->sums.total.frees);
	json_number(g, "leaked_count", m->sums.total.live_blocks);
	json_number(g, "leaked_bytes", m->sums.total.live_bytes);
	json_number(g, "leaked_usable_bytes", m->sums.total.live_usable);
	json_number(g, "uncertain_count", m->doubts.uncertain_blocks);
	call_number(g, m, "temporary", m->sums.total.temporary);
	call_number(g, m, "temporary_bytes", m->sums.total.temporary_bytes);
	json_number(g, "peak_bytes", m->sums.peak_bytes);
	json_number(g, "peak_count", m->sums.peak_blocks);
	json_timeval(g, "peak_at", m->sums.peak_time_ns);
	json_number(g, "foreign_frees", m->counts.foreign_frees);
	json_number(g, "foreign_reallocs", m->counts.foreign_reallocs);
	json_number(g, "housekeeping_frees", m->counts.housekeeping_frees);
	call_number(g, m, "failed_reallocs", m->counts.failed_reallocs);
	json_number(g, "carried_count", m->sums.carried_blocks);
	json_number(g, "carried_bytes", m->sums.carried_bytes);
	json_number(g, "culled_count", m->sums.culled_blocks);
	json_number(g, "culled_bytes", m->sums.culled_bytes);
	json_boolean(g, "peak_has_culled", m->sums.peak_has_culled);
	call_number(g, m, "mapped_bytes", m->facts.mapped_bytes);
	call_number(g, m, "maps",
		    (m->unfiltered.group ? &m->unfiltered.total : &m->sums.total)->maps);
	call_number(g, m, "inner_maps", m->facts.inner_maps);
	call_number(g, m, "unmaps", m->facts.unmaps);
	json_number(g, "unique_backtrace_count", stacks_used(m));
	yajl_gen_map_close(g);
}

static void write_losses(yajl_gen g, const struct model *m)
{
	struct model_loss l;

	json_name(g, "losses");
	yajl_gen_map_open(g);
	for (uint32_t i = 0; (l = model_loss(m, i)).name; i++)
		json_number(g, l.name, l.value);
	yajl_gen_map_close(g);
}

static void write_lists(yajl_gen g, const struct model *m)
{
	json_name(g, "functions");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->facts.hooks.n; i++) {
		yajl_gen_map_open(g);
		json_text(g, "function", m->facts.hooks.at[i].name);
		json_text(g, "library", m->facts.hooks.at[i].module);
		call_number(g, m, "calls", m->facts.hooks.at[i].calls);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	json_name(g, "threads");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->tasks.threads.n; i++) {
		const struct model_thread *t = &m->tasks.threads.at[i];

		yajl_gen_map_open(g);
		json_number(g, "thread", t->tid);
		json_text(g, "name", t->name);
		call_number(g, m, "allocations", t->allocations);
		call_number(g, m, "allocated_bytes", t->allocated_bytes);
		call_number(g, m, "frees", t->frees);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	json_name(g, "mallopts");
	yajl_gen_array_open(g);
	vec_for_each (&m->facts.mallopts, o) {
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", o->time_ns);
		json_number(g, "thread", o->tid);
		json_number(g, "backtrace_id", o->stack);
		json_text(g, "param", mallopt_name(o->param));
		json_integer(g, "raw_param", o->param);
		json_integer(g, "value", o->value);
		json_integer(g, "result", o->result);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	timeline_members(g, m);
}

static void write_sums(yajl_gen g, const struct model *m, const struct group *gr)
{
	call_number(g, m, "allocated_count", gr->allocations);
	call_number(g, m, "size", gr->allocated_bytes);
	call_number(g, m, "usable_size", gr->usable_bytes);
	call_number(g, m, "freed_count", gr->frees);
	json_number(g, "leaked_count", gr->live_blocks);
	json_number(g, "leaked_bytes", gr->live_bytes);
	write_errors(g, m, gr);
	json_number(g, "uncertain_count", gr->uncertain_blocks);
	call_number(g, m, "temporary_count", gr->temporary);
	call_number(g, m, "peak_bytes", gr->peak_bytes);
	call_number(g, m, "peak_count", gr->peak_blocks);
	call_number(g, m, "maps", gr->maps);
	call_number(g, m, "map_bytes", gr->map_bytes);
}

static void write_groups(yajl_gen g, struct model *m, const struct places *p)
{
	json_name(g, "allocation_groups");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		const struct group *gr = &m->sums.group[id];

		if (!gr->allocations && !gr->maps && !gr->live_blocks && !gr->frees)
			continue;
		yajl_gen_map_open(g);
		json_number(g, "backtrace_id", id);
		json_number(g, "site", p->of_stack[id]);
		write_sums(g, m, gr);
		json_text(g, "shape", growth_name(growth_of(m, id)));
		json_timeval(g, "min_timestamp_relative", gr->first_ns);
		json_timeval(g, "max_timestamp_relative", gr->last_ns);
		json_backtrace(g, m, id);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_blocks(yajl_gen g, const struct model *m)
{
	json_name(g, "leaks");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct model_block *b = &m->blocks.at[i];

		yajl_gen_map_open(g);
		json_address(g, b->addr);
		json_number(g, "size", b->size);
		json_number(g, "extra_space", b->usable - b->size);
		json_timeval(g, "timestamp_relative", b->time_ns);
		json_number(g, "thread", b->tid);
		json_number(g, "backtrace_id", b->stack);
		json_boolean(g, "is_mmaped", b->flags & EV_F_MMAPPED);
		json_boolean(g, "in_main_arena", model_allocator(m, b) == ALLOCATOR_MAIN_ARENA);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

int json_write(struct model *m, enum group_by by, bool with_blocks, FILE *out)
{
	enum cost cost = with_blocks || m->info.live_only ? COST_LEAKED : COST_ALLOCATED;
	yajl_gen g = json_begin(out, true);
	struct places p;

	if (!g)
		return -ENOMEM;
	if (places_find(m, by, cost, true, &p)) {
		yajl_gen_free(g);
		return -ENOMEM;
	}
	yajl_gen_map_open(g);
	json_info(g, m);
	write_thinning(g, m);
	write_totals(g, m);
	write_all(g, m);
	write_losses(g, m);
	stack_ends_json(g, m);
	symbol_gaps_json(g, m);
	write_lists(g, m);
	sites_json(g, m, &p, write_sums);
	write_groups(g, m, &p);
	if (with_blocks)
		write_blocks(g, m);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	places_free(&p);
	return ferror(out) ? -EIO : 0;
}

int json_write_doubts(const struct model *m, FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_info(g, m);
	json_number(g, "events", m->counts.events);
	json_number(g, "uncertain_count", m->doubts.uncertain_blocks);
	json_number(g, "not_judged_count", m->doubts.unjudged_blocks);
	json_number(g, "not_judged_bytes", m->doubts.unjudged_bytes);
	json_number(g, "culled_count", m->sums.culled_blocks);
	json_number(g, "culled_bytes", m->sums.culled_bytes);
	write_thinning(g, m);
	write_losses(g, m);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ferror(out) ? -EIO : 0;
}

/* An index has no other sums of a stack. */
static void write_live(yajl_gen g, const struct model *m, const struct group *gr)
{
	(void)m;
	json_number(g, "leaked_count", gr->live_blocks);
	json_number(g, "leaked_bytes", gr->live_bytes);
}

static void write_quick_totals(yajl_gen g, const struct model *m)
{
	json_name(g, "totals");
	yajl_gen_map_open(g);
	json_number(g, "events", m->counts.events);
	json_number(g, "allocations", m->sums.total.allocations);
	json_number(g, "allocated_bytes", m->sums.total.allocated_bytes);
	json_number(g, "frees", m->sums.total.frees);
	json_number(g, "leaked_count", m->sums.total.live_blocks);
	json_number(g, "leaked_bytes", m->sums.total.live_bytes);
	json_number(g, "peak_bytes", m->sums.peak_bytes);
	json_number(g, "peak_count", m->sums.peak_blocks);
	json_timeval(g, "peak_at", m->sums.peak_time_ns);
	json_boolean(g, "peak_has_culled", m->sums.peak_has_culled);
	yajl_gen_map_close(g);
}

int json_write_quick(struct model *m, FILE *out)
{
	yajl_gen g = json_begin(out, true);
	struct places p;

	if (!g)
		return -ENOMEM;
	if (places_find(m, GROUP_BY_LINE, COST_LEAKED, false, &p)) {
		yajl_gen_free(g);
		return -ENOMEM;
	}
	yajl_gen_map_open(g);
	json_info(g, m);
	write_thinning(g, m);
	write_quick_totals(g, m);
	write_losses(g, m);
	sites_json(g, m, &p, write_live);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	places_free(&p);
	return ferror(out) ? -EIO : 0;
}
