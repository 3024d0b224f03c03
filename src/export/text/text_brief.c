/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/text_brief.h"

#include <time.h>
#include "export/lists/site_list.h"
#include "export/lists/symbol_gaps.h"
#include "export/text/terminal.h"
#include "export/text/text_head.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "lib/utf8.h"
#include "model/model.h"

#define FRAMES	 3
#define WIDTH	 79
#define PERCENT	 100.0
#define DOUBTFUL 1.0 /* percent of incomplete stacks that are worth a line */
/* A program has a heap of its own if the memory that it maps exceeds these bytes and this multiple
 * of what malloc() returned; as in control/summary.c. */
#define OWN_HEAP  (1u << 20)
#define OWN_TIMES 4

static bool own_heap(const struct model *m)
{
	const struct group *all = m->unfiltered.group ? &m->unfiltered.total : &m->sums.total;

	return m->facts.mapped_bytes >= OWN_HEAP &&
	       m->facts.mapped_bytes > OWN_TIMES * all->allocated_bytes;
}

/* Return: true if every event was recorded, and none was an allocation or a free. */
static bool called_nothing(const struct model *m)
{
	const struct mp_losses *l = &m->facts.losses;

	return !m->unfiltered.group && !m->info.live_only && !m->info.sample_interval &&
	       !m->source.truncated && !m->sums.total.allocations && !m->sums.total.frees &&
	       !m->sums.total.live_blocks && !mp_losses_events(l) && !l->left_out_allocs &&
	       !l->left_out_frees;
}

void text_losses(const struct mp_losses *l, uint64_t events, bool uncertain, FILE *out)
{
	const uint64_t lost = mp_losses_events(l);
	double share = PERCENT * (double)lost / (double)(lost + events);
	const char *result = uncertain ? "live blocks unreliable" : "all sums too low";
	/* A recorder that misses its deadline was not executed: no option of memprof helps. */
	const char *help = l->stale > lost / 2 ? "memprof got too little processor time"
			   : share >= 1	       ? "use --lossless or --sample"
					       : "use --lossless";

	fputs(lost ? term_on(out, TERM_BAD) : "", out);
	if (!lost)
		fputs("nothing", out);
	else if (share >= 1)
		fprintf(out, "%.0f %% of events, %s: %s", share, result, help);
	else
		fprintf(out, "%s (%.2g %%), %s: %s", counted(lost, "event"), share, result, help);
	fprintf(out, "%s\n", lost ? term_off(out) : "");
}

static void head(const struct model *m, FILE *out)
{
	static const char *const reason[] = {"; the recording continues",
					     "; detached",
					     "; the program ended",
					     "; it executed another program",
					     "; time was up",
					     "; ended by an error",
					     "; the session stayed",
					     "; continued in another file"};
	time_t at = (time_t)(m->info.start_unix_ns / 1000000000u);
	const char *command = m->info.cmdline[0] ? m->info.cmdline : m->info.executable;
	uint8_t why = m->facts.has_finish ? m->facts.finish.reason : 0;
	char line[WIDTH + 1], when[32] = "?";
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(line, sizeof(line), "%s", printable(command));
	utf8_clean(line);
	text_bold(out, line);
	if (m->tasks.processes.n)
		fprintf(out, "processes   %zu, from %s on, for %.1f s\n", m->tasks.processes.n,
			when, (double)m->facts.end_ns / 1e9);
	else
		fprintf(
		    out, "process     %u, %s %s, for %.1f s%s\n", m->info.pid,
		    m->info.mode ? "run at" : "attached at", when, (double)m->facts.end_ns / 1e9,
		    !m->facts.has_finish ? "" : reason[why <= MP_END_PIECED ? why : MP_END_ERROR]);
	text_piece(m, out);
}

/* A recording of the live heap has no calls; its peak is that of all blocks. */
static void live_sums(const struct model *m, FILE *out)
{
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;
	char live[ERROR_TEXT];

	fputs("live only   the blocks that were live when it was written, not the calls before\n",
	      out);
	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->live_blocks),
			counted(all->live_blocks, "block"), human(t->live_bytes),
			human(all->live_bytes));
	text_suppressed(m, "suppressed  ", out);
	fprintf(out, "live        %s%s in %s", human(t->live_bytes),
		text_error(t->variance_live, true, live), counted(t->live_blocks, "block"));
	if (!m->unfiltered.group)
		fprintf(out, "; peak %s at %.1f s", human(m->sums.peak_bytes),
			(double)m->sums.peak_time_ns / 1e9);
	fputc('\n', out);
}

static void sums(const struct model *m, FILE *out)
{
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;
	char live[ERROR_TEXT], allocated[ERROR_TEXT];

	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->allocations),
			counted(all->allocations, "allocation"), human(t->allocated_bytes),
			human(all->allocated_bytes));
	text_suppressed(m, "suppressed  ", out);
	fprintf(out, "allocated   %s%s in %s, %s freed\n", human(t->allocated_bytes),
		text_error(t->variance_allocated, true, allocated),
		counted(t->allocations, "allocation"), thousands(t->frees));
	/* With an error or a condition, both would be wider than a screen. */
	fprintf(out, "live        %s%s in %s at the end%s%s at %.1f s%s\n", human(t->live_bytes),
		text_error(t->variance_live, true, live), counted(t->live_blocks, "block"),
		t->variance_live > 0 || !m->sums.peak_has_culled ? "\npeak        " : "; peak ",
		human(m->sums.peak_bytes), (double)m->sums.peak_time_ns / 1e9,
		m->sums.peak_has_culled ? "" : ", without short-lived blocks");
	if (own_heap(m))
		fprintf(out, "mapped      %s by the program itself, not by malloc\n",
			human(m->facts.mapped_bytes));
	else if (called_nothing(m))
		fputs("no call     the program was idle, or has an allocator of its own\n", out);
}

static void resident(const struct model *m, FILE *out)
{
	const struct mp_sample *first = NULL, *last = NULL;

	vec_for_each (&m->facts.samples, s) {
		if (!s->rss)
			continue;
		first = first ? first : s;
		last = s;
	}
	if (first != last)
		fprintf(out, "resident    %s at %.1f s, %s at %.1f s\n", human(first->rss),
			(double)first->time_ns / 1e9, human(last->rss),
			(double)last->time_ns / 1e9);
}

static void doubts(const struct model *m, FILE *out)
{
	const struct mp_losses *l = &m->facts.losses;
	uint64_t incomplete = l->stacks_total - l->stacks_complete;

	fputs("lost        ", out);
	text_losses(l, m->counts.events, m->doubts.uncertain_blocks > 0, out);
	if (m->doubts.uncertain_blocks)
		fprintf(out, "            %s of the live blocks may have been freed\n",
			thousands(m->doubts.uncertain_blocks));
	if (l->mismatches)
		fprintf(out, "            %s allocated again without a recorded free\n",
			counted(l->mismatches, "address"));
	if (m->source.truncated)
		fputs("cut off     the end of the recording is missing (--verbose)\n", out);
	if (m->info.sample_interval)
		fprintf(out, "sampled     one point per %s; bytes and blocks are estimates\n",
			human(m->info.sample_interval));
	if (l->thinned && m->info.overhead_ppm)
		fprintf(out,
			"sampled     about %s of %s were not recorded: estimates (--verbose)\n",
			counted(l->thinned, "allocation"), human(l->thinned_bytes));
	else if (l->thinned)
		fprintf(out, "estimated   %s of %s were thinned out (--verbose)\n",
			counted(l->thinned, "allocation"), human(l->thinned_bytes));
	if (m->doubts.unjudged_blocks)
		fprintf(out, "not judged  %s: the filter needs every event (attach --history)\n",
			counted(m->doubts.unjudged_blocks, "culled block"));
	if (l->stacks_total && PERCENT * (double)incomplete >= DOUBTFUL * (double)l->stacks_total)
		fprintf(out, "stacks      %.0f %% are incomplete (--verbose)\n",
			PERCENT * (double)incomplete / (double)l->stacks_total);
	symbol_gaps_brief(m, out);
	if (l->left_out_allocs || l->left_out_frees)
		fprintf(out, "left out    %s of other threads, or while paused\n",
			counted(l->left_out_allocs + l->left_out_frees, "event"));
}

/* Return: false if it is known that the recorded process ended, or if there were several. */
static bool may_run(const struct model *m)
{
	return !m->tasks.processes.n && !m->info.mode &&
	       !(m->facts.has_finish && (m->facts.finish.reason == MP_END_EXITED ||
					 m->facts.finish.reason == MP_END_EXECED));
}

static void next(const struct model *m, FILE *out)
{
	const char *file = printable(m->source.path);

	fprintf(out, "\nnext:\n");
	if (own_heap(m))
		fprintf(out, "  memprof report %s --tree --cost mapped\n", file);
	else if (called_nothing(m) && may_run(m))
		fprintf(out, "  memprof attach -p %u --event page-faults\n", m->info.pid);
	else if (m->sums.total.live_bytes || m->info.live_only)
		fprintf(out, "  memprof report %s --flamegraph live.svg --cost live\n", file);
	else
		fprintf(out, "  memprof report %s --flamegraph allocated.svg\n", file);
	fprintf(out, "  memprof report %s %s\n", file, m->info.live_only ? "--quick" : "--verbose");
}

void text_brief(struct model *m, const struct text_options *o, FILE *out)
{
	head(m, out);
	if (m->info.live_only)
		live_sums(m, out);
	else
		sums(m, out);
	doubts(m, out);
	resident(m, out);
	site_list(m, o, COST_LEAKED, "Not freed, by bytes", o->top, FRAMES, out);
	if (own_heap(m))
		site_list(m, o, COST_MAPPED, "Mapped by the program itself, by bytes", o->others,
			  FRAMES, out);
	else if (!o->leaks_only && !m->info.live_only)
		site_list(m, o, COST_ALLOCATED, "Allocated, by bytes", o->others, FRAMES, out);
	next(m, out);
}
