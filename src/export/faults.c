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
	char a[32], b[32], c[24], d[24];

	if (m->unfiltered.group)
		fprintf(out, "filtered    %s of %s page faults, %s of %s\n",
			human_number(t->allocations, a), human_number(all->allocations, b),
			human_bytes(t->allocated_bytes, c), human_bytes(all->allocated_bytes, d));
	fprintf(out, "faults      %s, pages of %s; %s of them major (waited for a file or swap)\n",
		human_number(t->allocations, a), human_bytes(t->allocated_bytes, c),
		human_number(t->major, b));
	if (t->huge)
		fprintf(out, "huge pages  %s of the faults, %s\n", human_number(t->huge, a),
			human_bytes(t->huge_bytes, c));
	if (m->sums.unsized)
		fprintf(
		    out,
		    "            the kernel did not report the size of %s pages: %s is assumed\n",
		    human_number(m->sums.unsized, a), human_bytes(m->info.page_size, c));
	if (m->info.user_only)
		fputs("            without page faults inside system calls (memprof had no "
		      "CAP_PERFMON)\n",
		      out);
	text_resident(m, out);
	if (m->facts.losses.stacks_total)
		fprintf(
		    out, "stacks      %s different; %s of %s faults have an incomplete one\n",
		    human_number(stacks_used(m), a),
		    human_number(m->facts.losses.stacks_total - m->facts.losses.stacks_complete, b),
		    human_number(m->facts.losses.stacks_total, c));
	stack_ends_text(m, "faults", out);
	if (m->facts.losses.left_out_allocs)
		fprintf(out, "left out    %s faults (of other threads, or while paused)\n",
			human_number(m->facts.losses.left_out_allocs, a));
	if (mp_losses_events(&m->facts.losses))
		fprintf(out, "lost        %s faults\n",
			human_number(mp_losses_events(&m->facts.losses), a));
	else
		fputs("lost        nothing\n", out);
}

static void site(struct model *m, uint32_t id, enum cost cost, FILE *out)
{
	const struct group *g = &m->sums.group[id];
	char a[32], b[32];

	if (cost_is_bytes(cost))
		fprintf(out, "%12s in %s faults\n", human_bytes(group_cost(g, cost), a),
			human_number(g->allocations, b));
	else
		fprintf(out, "%12s of %s\n", human_number(group_cost(g, cost), a),
			human_number(g->allocations, b));
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
			fprintf(out, "%12s %u more sites; --top %u shows them\n", "...", n - o->top,
				n);
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
