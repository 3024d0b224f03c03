/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/faults.h"

#include <stdlib.h>
#include "export/lists/site_list.h"
#include "export/lists/stack_ends.h"
#include "export/lists/symbol_gaps.h"
#include "export/text/text.h"
#include "export/text/text_head.h"
#include "lib/human.h"
#include "model/model.h"
#include "model/stack_order.h"

#define SITE_FRAMES  6
#define BRIEF_FRAMES 3 /* without --verbose */

static void totals(const struct model *m, bool verbose, FILE *out)
{
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;

	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->allocations),
			counted(all->allocations, "page fault"), human(t->allocated_bytes),
			human(all->allocated_bytes));
	if (m->suppressed.stacks)
		fprintf(out, "suppressed  %s: %s\n", counted(m->suppressed.stacks, "stack"),
			counted(m->suppressed.sum.allocations, "page fault"));
	fprintf(out, "faults      %s, pages of %s; %s of them major (waited for a file or swap)\n",
		thousands(t->allocations), human(t->allocated_bytes), thousands(t->major));
	if (t->huge)
		fprintf(out, "huge pages  %s of the faults, %s\n", thousands(t->huge),
			human(t->huge_bytes));
	if (m->sums.unsized)
		fprintf(out,
			"            the kernel did not report the size of %s: %s is assumed\n",
			counted(m->sums.unsized, "page"), human(m->info.page_size));
	if (m->info.user_only)
		fputs("            without page faults inside system calls (memprof had no "
		      "CAP_PERFMON)\n",
		      out);
	text_resident(m, out);
	if (m->facts.losses.stacks_total)
		fprintf(out, "stacks      %s different; %s of %s with an incomplete one\n",
			thousands(stacks_used(m)),
			thousands(m->facts.losses.stacks_total - m->facts.losses.stacks_complete),
			counted(m->facts.losses.stacks_total, "fault"));
	stack_ends_text(m, "fault", out);
	if (verbose)
		symbol_gaps_text(m, out);
	else
		symbol_gaps_brief(m, out);
	if (m->facts.losses.left_out_allocs)
		fprintf(out, "left out    %s (of other threads, or while paused)\n",
			counted(m->facts.losses.left_out_allocs, "fault"));
	if (mp_losses_events(&m->facts.losses))
		fprintf(out, "lost        %s\n",
			counted(mp_losses_events(&m->facts.losses), "fault"));
	else
		fputs("lost        nothing\n", out);
}

static void list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
		 FILE *out)
{
	site_list(m, o, cost, title, o->top, o->verbose ? SITE_FRAMES : BRIEF_FRAMES, out);
}

void faults_text(struct model *m, const struct text_options *o, FILE *out)
{
	text_head(m, out);
	totals(m, o->verbose, out);
	list(m, o, COST_FAULTED, "Faulted in, by bytes", out);
	if (m->sums.total.huge && o->verbose)
		list(m, o, COST_FAULTS, "Faulted in, by number", out);
	list(m, o, COST_MAJOR, "Major faults", out);
}
