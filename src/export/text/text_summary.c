/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/text_summary.h"

#include "export/lists/site_list.h"
#include "export/lists/stack_ends.h"
#include "export/lists/symbol_gaps.h"
#include "export/text/text_brief.h"
#include "export/text/text_head.h"
#include "lib/human.h"
#include "model/model.h"
#include "model/stack_order.h"
#include "model/sums/weight.h"

#define SITE_FRAMES   6
#define SHOWN_PERIODS 4

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

/* When it was thinned, and how much. */
static void print_thinned(const struct model *m, FILE *out)
{
	const struct thinned *t = &m->sums.thinned;
	const struct mp_losses *l = &m->facts.losses;

	if (l->thinned && m->info.overhead_ppm)
		fprintf(out,
			"sampled     for a cost of at most %s: about %s of %s were not recorded; "
			"others "
			"represent them%s\n",
			human_part(m->info.overhead_ppm), counted(l->thinned, "allocation"),
			human(l->thinned_bytes),
			m->source.quick ? "" : ", +- their standard error");
	else if (l->thinned)
		fprintf(out,
			"estimated   %s of %s were thinned out; others "
			"represent them%s\n",
			counted(l->thinned, "allocation"), human(l->thinned_bytes),
			m->source.quick ? "" : ", +- their standard error");
	for (uint32_t i = 0; i < t->n && i < SHOWN_PERIODS; i++) {
		const struct thinned_period *p = &t->period[i];

		fprintf(out, "            from %.2f s to %.2f s: 1 in %.1f, at most 1 in %u\n",
			(double)p->from_ns / 1e9, (double)p->to_ns / 1e9,
			(double)p->represented / (double)p->recorded, 1u << p->most);
	}
	if (t->n > SHOWN_PERIODS)
		fprintf(out, "            and %s more\n", counted(t->n - SHOWN_PERIODS, "period"));
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
	print_thinned(m, out);
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
	print_thinned(m, out);
	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->allocations),
			counted(all->allocations, "allocation"), human(t->allocated_bytes),
			human(all->allocated_bytes));
	text_suppressed(m, "suppressed  ", out);
	if (m->doubts.unjudged_blocks)
		fprintf(out,
			"not judged  %s of %s: the filter needs every event (attach --history)\n",
			counted(m->doubts.unjudged_blocks, "culled block"),
			human(m->doubts.unjudged_bytes));
	fprintf(out, "allocated   %s%s in %s%s (%s a second)\n", human(t->allocated_bytes),
		text_error(t->variance_allocated, true, d), counted(t->allocations, "allocation"),
		text_error(t->variance_allocations, false, e),
		thousands((uint64_t)((double)t->allocations / s + 0.5)));
	fprintf(out, "freed       %s", counted(t->frees, "block"));
	if (m->counts.foreign_frees || m->counts.foreign_reallocs)
		fprintf(out, ", and %s that are older than the recording%s",
			thousands(m->counts.foreign_frees + m->counts.foreign_reallocs),
			mp_losses_events(&m->facts.losses) ? " or whose allocation was lost" : "");
	fputc('\n', out);
	fprintf(out, "live        %s%s in %s%s at the end (allocated during the recording)\n",
		human(t->live_bytes), text_error(t->variance_live, true, d),
		counted(t->live_blocks, "block"), text_error(t->variance_blocks, false, e));
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
		fprintf(out, "carried     %s in %s from %s, included in what is live\n",
			human(m->sums.carried_bytes), counted(m->sums.carried_blocks, "block"),
			m->info.piece ? "the piece before" : "the previous recorder");
	if (m->sums.culled_blocks)
		fprintf(out, "culled      %s of %s, short-lived: in all sums%s, not one by one\n",
			counted(m->sums.culled_blocks, "block"), human(m->sums.culled_bytes),
			m->sums.peak_has_culled ? "" : " but the peak");
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
	symbol_gaps_text(m, out);
	if (m->facts.losses.left_out_allocs || m->facts.losses.left_out_frees)
		fprintf(out,
			"left out    %s (of other threads, or while paused), %s of blocks that are "
			"not in the recording\n",
			counted(m->facts.losses.left_out_allocs, "allocation"),
			counted(m->facts.losses.left_out_frees, "free"));
	fputs("lost        ", out);
	print_losses(&m->facts.losses, out);
}

static void list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
		 FILE *out)
{
	site_list(m, o, cost, title, o->top, SITE_FRAMES, out);
}

static void quick_summary(struct model *m, const struct text_options *o, FILE *out)
{
	text_head(m, out);
	quick_totals(m, out);
	list(m, o, COST_LEAKED, "Not freed, by bytes", out);
}

void text_summary(struct model *m, const struct text_options *o, FILE *out)
{
	if (m->source.quick) {
		quick_summary(m, o, out);
		return;
	}
	/* Of the live heap all is on one screen. */
	if (!o->verbose || m->info.live_only) {
		text_brief(m, o, out);
		return;
	}
	text_head(m, out);
	totals(m, out);
	list(m, o, COST_LEAKED, "Not freed, by bytes", out);
	if (o->leaks_only)
		return;
	list(m, o, COST_ALLOCATED, "Allocated, by bytes", out);
	list(m, o, COST_COUNT, "Allocated, by number", out);
	if (!m->info.sample_interval)
		list(m, o, COST_TEMPORARY, "Temporary", out);
	/* Shown only if they exceed malloc(): every program has some. */
	if (m->facts.mapped_bytes > m->sums.total.allocated_bytes)
		list(m, o, COST_MAPPED, "Mapped by the program itself, by bytes", out);
}
