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
	char a[32], b[32], c[32], d[32], e[32], f[24], g[32], h[24], i[24];

	if (!mp_losses_events(l) && !l->mismatches) {
		fputs("nothing\n", out);
		return;
	}
	fprintf(out, "%s allocations (%s), %s frees, %s reallocs, %s maps, %s other",
		human_number(l->lost_alloc, a), human_bytes(l->lost_bytes, f),
		human_number(l->lost_free, b), human_number(l->lost_realloc, c),
		human_number(l->lost_map, d), human_number(l->lost_other, e));
	fprintf(out,
		" by the rings; %s of threads without a slot, %s after the recorder missed its "
		"deadline\n",
		human_number(l->lost_no_slot, b), human_number(l->stale, c));
	if (l->queue_events)
		fprintf(out,
			"            by the queue: %s allocations (%s), %s frees, %s reallocs, %s "
			"maps, %s other; %s whole batches dropped, %s of records; peak %s",
			human_number(l->queue_alloc, a), human_bytes(l->queue_requested, f),
			human_number(l->queue_free, b), human_number(l->queue_realloc, c),
			human_number(l->queue_map, d), human_number(l->queue_other, e),
			human_number(l->queue_batches, g), human_bytes(l->queue_bytes, h),
			human_bytes(l->queue_peak_bytes, i));
	if (l->queue_events)
		fprintf(out, " of %s\n", human_bytes(l->queue_ceiling, f));
	if (l->restart_alloc + l->restart_free + l->restart_realloc + l->restart_map)
		fprintf(out,
			"            when one recorder took over from another: %s allocations, %s "
			"frees, %s realloc events, %s maps\n",
			human_number(l->restart_alloc, a), human_number(l->restart_free, b),
			human_number(l->restart_realloc, c), human_number(l->restart_map, d));
	if (l->mismatches)
		fprintf(
		    out,
		    "            %s addresses were allocated again although no free was recorded\n",
		    human_number(l->mismatches, a));
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
	char a[32], c[24], d[32];

	fputs("quick       from the index: only live blocks are listed by stack\n", out);
	if (m->info.sample_interval)
		fprintf(
		    out,
		    "sampled     on average one point per %s requested; live bytes are estimates\n",
		    human_bytes(m->info.sample_interval, c));
	else
		fprintf(out, "allocated   %s in %s allocations; %s blocks freed\n",
			human_bytes(m->sums.total.allocated_bytes, c),
			human_number(m->sums.total.allocations, a),
			human_number(m->sums.total.frees, d));
	fprintf(out, "live        %s in %s blocks at the end (allocated during the recording)\n",
		human_bytes(m->sums.total.live_bytes, c),
		human_number(m->sums.total.live_blocks, a));
	if (mp_losses_frees(&m->facts.losses))
		fprintf(out, "            up to %s of these may have been freed: frees were lost\n",
			human_number(mp_losses_frees(&m->facts.losses), a));
	if (!m->tasks.processes.n) /* the index of a merged recording does not have it */
		fprintf(out, "peak        %s in %s blocks, %.1f s after the start\n",
			human_bytes(m->sums.peak_bytes, c), human_number(m->sums.peak_blocks, a),
			(double)m->sums.peak_time_ns / 1e9);
	fputs("lost        ", out);
	print_losses(&m->facts.losses, out);
}

static void totals(struct model *m, FILE *out)
{
	char a[32], b[32], c[24], d[ERROR_TEXT], e[ERROR_TEXT];
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;
	double s = m->facts.end_ns ? (double)m->facts.end_ns / 1e9 : 1;

	if (m->info.sample_interval)
		fprintf(out,
			"sampled     on average one point per %s requested; bytes and blocks are "
			"estimates, +- their standard error\n",
			human_bytes(m->info.sample_interval, c));
	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s allocations, %s of %s\n",
			human_number(t->allocations, a), human_number(all->allocations, b),
			human_bytes(t->allocated_bytes, c), human_bytes(all->allocated_bytes, d));
	if (m->doubts.unjudged_blocks)
		fprintf(out,
			"not judged  %s culled blocks of %s: the filter needs data that culling "
			"did not keep\n",
			human_number(m->doubts.unjudged_blocks, a),
			human_bytes(m->doubts.unjudged_bytes, c));
	fprintf(out, "allocated   %s%s in %s allocations%s (%s a second)\n",
		human_bytes(t->allocated_bytes, c), bytes_error(m, t->variance_allocated, d),
		human_number(t->allocations, a), number_error(m, t->variance_allocations, e),
		human_number((uint64_t)((double)t->allocations / s + 0.5), b));
	fprintf(out, "freed       %s blocks", human_number(t->frees, a));
	if (m->counts.foreign_frees || m->counts.foreign_reallocs)
		fprintf(out, ", and %s that are older than the recording%s",
			human_number(m->counts.foreign_frees + m->counts.foreign_reallocs, b),
			mp_losses_events(&m->facts.losses) ? " or whose allocation was lost" : "");
	fputc('\n', out);
	fprintf(out,
		"live        %s%s in %s blocks%s at the end (allocated during the recording)\n",
		human_bytes(t->live_bytes, c), bytes_error(m, t->variance_live, d),
		human_number(t->live_blocks, a), number_error(m, t->variance_blocks, e));
	if (m->doubts.uncertain_blocks)
		fprintf(
		    out,
		    "            %s of these may have been freed: frees were lost %.1f to %.1f s "
		    "after the start\n",
		    human_number(m->doubts.uncertain_blocks, a),
		    (double)m->facts.losses.first_loss_ns / 1e9,
		    (double)m->facts.losses.last_loss_ns / 1e9);
	fprintf(out, "peak        %s in %s blocks, %.1f s after the start\n",
		human_bytes(m->sums.peak_bytes, c), human_number(m->sums.peak_blocks, a),
		(double)m->sums.peak_time_ns / 1e9);
	if (m->sums.carried_blocks)
		fprintf(out,
			"carried     %s in %s blocks from the previous recorder, included in what "
			"is live\n",
			human_bytes(m->sums.carried_bytes, c),
			human_number(m->sums.carried_blocks, a));
	if (m->sums.culled_blocks) {
		fprintf(
		    out, "culled      %s blocks of %s, short-lived: in the sums, not in the peak",
		    human_number(m->sums.culled_blocks, a), human_bytes(m->sums.culled_bytes, c));
		if (m->facts.finish.peak_live_bytes)
			fprintf(out, " (%s with them)",
				human_bytes(m->facts.finish.peak_live_bytes, d));
		fputc('\n', out);
	}
	if (!m->info.sample_interval)
		fprintf(
		    out,
		    "temporary   %s allocations (%.1f %%), freed before their thread's next one\n",
		    human_number(t->temporary, a),
		    t->allocations ? 100.0 * (double)t->temporary / (double)t->allocations : 0.0);
	if (m->facts.mapped_bytes || m->facts.inner_maps)
		fprintf(out,
			"mapped      %s by the program's own calls (--tree --cost mapped); %s "
			"mappings by allocators for themselves\n",
			human_bytes(m->facts.mapped_bytes, d),
			human_number(m->facts.inner_maps, a));
	text_resident(m, out);
	if (m->facts.losses.stacks_total)
		fprintf(
		    out, "stacks      %s different; %s of %s allocations have an incomplete one\n",
		    human_number(stacks_used(m), a),
		    human_number(m->facts.losses.stacks_total - m->facts.losses.stacks_complete, b),
		    human_number(m->facts.losses.stacks_total, c));
	stack_ends_text(m, "allocations", out);
	if (m->facts.losses.left_out_allocs || m->facts.losses.left_out_frees)
		fprintf(out,
			"left out    %s allocations (of other threads, or while paused), %s frees "
			"of blocks that are not in the recording\n",
			human_number(m->facts.losses.left_out_allocs, a),
			human_number(m->facts.losses.left_out_frees, b));
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
	char more[32];

	if (!ids || !n) {
		free(ids);
		return;
	}
	fputc('\n', out);
	text_bold(o, out, title);
	for (uint32_t i = 0; i < n && i < o->top; i++)
		site(m, ids[i], cost, out);
	if (n > o->top)
		fprintf(out, "%12s %s more site%s; --top %u shows them\n", "...",
			human_number(n - o->top, more), plural(n - o->top), n);
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
