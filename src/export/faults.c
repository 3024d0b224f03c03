/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/faults.h"

#include <stdlib.h>
#include "export/stack_ends.h"
#include "export/text.h"
#include "export/text_head.h"
#include "lib/human.h"
#include "model/model.h"
#include "model/stack_order.h"

#define SITE_FRAMES 6

static void totals(const struct model *m, FILE *out)
{
	const struct group *t = &m->sums.total, *all = &m->unfiltered.total;

	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s, %s of %s\n", thousands(t->allocations),
			counted(all->allocations, "page fault"), human(t->allocated_bytes),
			human(all->allocated_bytes));
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
	if (m->facts.losses.left_out_allocs)
		fprintf(out, "left out    %s (of other threads, or while paused)\n",
			counted(m->facts.losses.left_out_allocs, "fault"));
	if (mp_losses_events(&m->facts.losses))
		fprintf(out, "lost        %s\n",
			counted(mp_losses_events(&m->facts.losses), "fault"));
	else
		fputs("lost        nothing\n", out);
}

static void site(struct model *m, uint32_t id, enum cost cost, FILE *out)
{
	const struct group *g = &m->sums.group[id];

	if (cost_is_bytes(cost))
		fprintf(out, "%12s in %s\n", human(group_cost(g, cost)),
			counted(g->allocations, "fault"));
	else
		fprintf(out, "%12s of %s\n", thousands(group_cost(g, cost)),
			thousands(g->allocations));
	text_stack(m, id, SITE_FRAMES, "              ", out);
}

static void list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
		 FILE *out)
{
	uint32_t n, *ids = stack_order(m, cost, &n);

	if (ids && n) {
		fputc('\n', out);
		text_bold(o, out, title);
		for (uint32_t i = 0; i < n && i < o->top; i++)
			site(m, ids[i], cost, out);
		if (n > o->top)
			fprintf(out, "%12s %s; --top %u shows %s\n", "...",
				counted(n - o->top, "more site"), n,
				n - o->top == 1 ? "it" : "them");
	}
	free(ids);
}

void faults_text(struct model *m, const struct text_options *o, FILE *out)
{
	text_head(m, o, out);
	totals(m, out);
	list(m, o, COST_FAULTED, "Faulted in, by bytes", out);
	if (m->sums.total.huge)
		list(m, o, COST_FAULTS, "Faulted in, by number", out);
	list(m, o, COST_MAJOR, "Major faults", out);
}
