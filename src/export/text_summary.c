/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text_summary.h"

#include <stdlib.h>
#include "export/stack_ends.h"
#include "export/text_head.h"
#include "lib/human.h"
#include "model/model.h"
#include "model/stack_order.h"

#define SITE_FRAMES 6
#define ERROR_TEXT  40

static void print_losses(const struct mp_losses *l, FILE *out)
{
	if (!mp_losses_events(l) && !l->mismatches) {
		fputs("nothing\n", out);
		return;
	}
	fprintf(out, "%s (%s), %s, %s, %s, %s other", counted(l->lost_alloc, "allocation"),
		human(l->lost_bytes), counted(l->lost_free, "free"),
		counted(l->lost_realloc, "realloc"), counted(l->lost_map, "map"),
		thousands(l->lost_other));
	fprintf(out,
		" by the rings; %s of threads without a slot, %s after the recorder missed its "
		"deadline\n",
		thousands(l->lost_no_slot), thousands(l->stale));
	if (l->queue_events)
		fprintf(out,
			"            by the queue: %s (%s), %s, %s, %s, %s other; %s dropped, %s "
			"of records; peak %s of %s\n",
			counted(l->queue_alloc, "allocation"), human(l->queue_requested),
			counted(l->queue_free, "free"), counted(l->queue_realloc, "realloc"),
			counted(l->queue_map, "map"), thousands(l->queue_other),
			counted(l->queue_batches, "whole batch"), human(l->queue_bytes),
			human(l->queue_peak_bytes), human(l->queue_ceiling));
	if (l->restart_alloc + l->restart_free + l->restart_realloc + l->restart_map)
		fprintf(
		    out, "            when one recorder took over from another: %s, %s, %s, %s\n",
		    counted(l->restart_alloc, "allocation"), counted(l->restart_free, "free"),
		    counted(l->restart_realloc, "realloc event"), counted(l->restart_map, "map"));
	if (l->mismatches)
		fprintf(out, "            %s %s allocated again although no free was recorded\n",
			counted(l->mismatches, "address"), l->mismatches == 1 ? "was" : "were");
}

/* Formats " +- 1.2 MiB" into @buf (ERROR_TEXT bytes), or "" if nothing is estimated. */
static const char *bytes_error(const struct model *m, double variance, char *buf)
{
	char a[24];

	*buf = 0;
	if (m->info.sample_interval && variance > 0)
		snprintf(buf, ERROR_TEXT, " +- %s",
			 human_bytes((uint64_t)group_error(variance), a));
	return buf;
}

static const char *number_error(const struct model *m, double variance, char *buf)
{
	char a[32];

	*buf = 0;
	if (m->info.sample_interval && variance > 0)
		snprintf(buf, ERROR_TEXT, " +- %s",
			 human_number((uint64_t)group_error(variance), a));
	return buf;
}

static void quick_totals(const struct model *m, FILE *out)
{
	fputs("quick       from the index: only live blocks are listed by stack\n", out);
	if (m->info.sample_interval)
		fprintf(
		    out,
		    "sampled     on average one point per %s requested; live bytes are estimates\n",
		    human(m->info.sample_interval));
	else
		fprintf(out, "allocated   %s in %s; %s freed\n",
			human(m->sums.total.allocated_bytes),
			counted(m->sums.total.allocations, "allocation"),
			counted(m->sums.total.frees, "block"));
	fprintf(out, "live        %s in %s at the end (allocated during the recording)\n",
		human(m->sums.total.live_bytes), counted(m->sums.total.live_blocks, "block"));
	if (mp_losses_frees(&m->facts.losses))
		fprintf(out, "            up to %s of these may have been freed: frees were lost\n",
			thousands(mp_losses_frees(&m->facts.losses)));
	if (!m->tasks.processes.n) /* the index of a merged recording does not have it */
		fprintf(out, "peak        %s in %s, %.1f s after the start\n",
			human(m->sums.peak_bytes), counted(m->sums.peak_blocks, "block"),
			(double)m->sums.peak_time_ns / 1e9);
	fputs("lost        ", out);
	print_losses(&m->facts.losses, out);
}

static void totals(struct model *m, FILE *out)
{
	char d[ERROR_TEXT], e[ERROR_TEXT];
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;
	double s = m->facts.end_ns ? (double)m->facts.end_ns / 1e9 : 1;

	if (m->info.sample_interval)
		fprintf(out,
			"sampled     on average one point per %s requested; bytes and blocks are "
			"estimates, +- their standard error\n",
			human(m->info.sample_interval));
	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->allocations),
			counted(all->allocations, "allocation"), human(t->allocated_bytes),
			human(all->allocated_bytes));
	if (m->doubts.unjudged_blocks)
		fprintf(out,
			"not judged  %s of %s: the filter needs data that culling did not keep\n",
			counted(m->doubts.unjudged_blocks, "culled block"),
			human(m->doubts.unjudged_bytes));
	fprintf(out, "allocated   %s%s in %s%s (%s a second)\n", human(t->allocated_bytes),
		bytes_error(m, t->variance_allocated, d), counted(t->allocations, "allocation"),
		number_error(m, t->variance_allocations, e),
		thousands((uint64_t)((double)t->allocations / s + 0.5)));
	fprintf(out, "freed       %s", counted(t->frees, "block"));
	if (m->counts.foreign_frees || m->counts.foreign_reallocs)
		fprintf(out, ", and %s that are older than the recording%s",
			thousands(m->counts.foreign_frees + m->counts.foreign_reallocs),
			mp_losses_events(&m->facts.losses) ? " or whose allocation was lost" : "");
	fputc('\n', out);
	fprintf(out, "live        %s%s in %s%s at the end (allocated during the recording)\n",
		human(t->live_bytes), bytes_error(m, t->variance_live, d),
		counted(t->live_blocks, "block"), number_error(m, t->variance_blocks, e));
	if (m->doubts.uncertain_blocks)
		fprintf(
		    out,
		    "            %s of these may have been freed: frees were lost %.1f to %.1f s "
		    "after the start\n",
		    thousands(m->doubts.uncertain_blocks),
		    (double)m->facts.losses.first_loss_ns / 1e9,
		    (double)m->facts.losses.last_loss_ns / 1e9);
	fprintf(out, "peak        %s in %s, %.1f s after the start\n", human(m->sums.peak_bytes),
		counted(m->sums.peak_blocks, "block"), (double)m->sums.peak_time_ns / 1e9);
	if (m->sums.carried_blocks)
		fprintf(
		    out,
		    "carried     %s in %s from the previous recorder, included in what is live\n",
		    human(m->sums.carried_bytes), counted(m->sums.carried_blocks, "block"));
	if (m->sums.culled_blocks) {
		fprintf(out, "culled      %s of %s, short-lived: in the sums, not in the peak",
			counted(m->sums.culled_blocks, "block"), human(m->sums.culled_bytes));
		if (m->facts.finish.peak_live_bytes)
			fprintf(out, " (%s with them)", human(m->facts.finish.peak_live_bytes));
		fputc('\n', out);
	}
	if (!m->info.sample_interval)
		fprintf(out, "temporary   %s (%.1f %%), freed before the same thread's next one\n",
			counted(t->temporary, "allocation"),
			t->allocations ? 100.0 * (double)t->temporary / (double)t->allocations
				       : 0.0);
	if (m->facts.mapped_bytes || m->facts.inner_maps)
		fprintf(out,
			"mapped      %s by the program's own calls (--tree --cost mapped); %s by "
			"allocators for themselves\n",
			human(m->facts.mapped_bytes), counted(m->facts.inner_maps, "mapping"));
	text_resident(m, out);
	if (m->facts.losses.stacks_total)
		fprintf(out, "stacks      %s different; %s of %s with an incomplete one\n",
			thousands(stacks_used(m)),
			thousands(m->facts.losses.stacks_total - m->facts.losses.stacks_complete),
			counted(m->facts.losses.stacks_total, "allocation"));
	stack_ends_text(m, "allocation", out);
	if (m->facts.losses.left_out_allocs || m->facts.losses.left_out_frees)
		fprintf(out,
			"left out    %s (of other threads, or while paused), %s of blocks that are "
			"not in the recording\n",
			counted(m->facts.losses.left_out_allocs, "allocation"),
			counted(m->facts.losses.left_out_frees, "free"));
	fputs("lost        ", out);
	print_losses(&m->facts.losses, out);
}

static void site(struct model *m, uint32_t id, enum cost cost, FILE *out)
{
	const struct group *g = &m->sums.group[id];
	char a[32], b[32], e[ERROR_TEXT], n[ERROR_TEXT];

	if (cost_is_bytes(cost))
		fprintf(out, "%12s%s in %s%s %s%s", human_bytes(group_cost(g, cost), a),
			bytes_error(m,
				    cost == COST_LEAKED	     ? g->variance_live
				    : cost == COST_ALLOCATED ? g->variance_allocated
							     : 0,
				    e),
			human_number(group_count(g, cost), b),
			number_error(m,
				     cost == COST_LEAKED      ? g->variance_blocks
				     : cost == COST_ALLOCATED ? g->variance_allocations
							      : 0,
				     n),
			cost_unit(cost), plural(group_count(g, cost)));
	else
		fprintf(out, "%12s of %s\n", human_number(group_cost(g, cost), a),
			human_bytes(
			    cost == COST_TEMPORARY ? g->temporary_bytes : g->allocated_bytes, b));
	if (cost == COST_LEAKED && g->uncertain_blocks)
		fprintf(out, " (%s of these may have been freed)",
			human_number(g->uncertain_blocks, b));
	if (cost_is_bytes(cost))
		fputc('\n', out);
	text_stack(m, id, SITE_FRAMES, "              ", out);
}

static void list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
		 FILE *out)
{
	uint32_t n, *ids = stack_order(m, cost, &n);

	if (!ids || !n) {
		free(ids);
		return;
	}
	fputc('\n', out);
	text_bold(o, out, title);
	for (uint32_t i = 0; i < n && i < o->top; i++)
		site(m, ids[i], cost, out);
	if (n > o->top)
		fprintf(out, "%12s %s; --top %u shows %s\n", "...",
			counted(n - o->top, "more site"), n, n - o->top == 1 ? "it" : "them");
	free(ids);
}

void text_summary(struct model *m, const struct text_options *o, FILE *out)
{
	text_head(m, o, out);
	if (m->source.quick)
		quick_totals(m, out);
	else
		totals(m, out);
	list(m, o, COST_LEAKED, "Not freed, by bytes", out);
	if (o->leaks_only || m->source.quick)
		return;
	list(m, o, COST_ALLOCATED, "Allocated, by bytes", out);
	list(m, o, COST_COUNT, "Allocated, by number", out);
	if (!m->info.sample_interval)
		list(m, o, COST_TEMPORARY, "Temporary", out);
	/* Shown only if they exceed malloc(): every program has some. */
	if (m->facts.mapped_bytes > m->sums.total.allocated_bytes)
		list(m, o, COST_MAPPED, "Mapped by the program itself, by bytes", out);
}
