/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/site_list.h"

#include <string.h>
#include "export/text/terminal.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"

const char *text_error(double variance, bool bytes, char *buf)
{
	uint64_t error = (uint64_t)group_error(variance);
	char a[32];

	*buf = 0;
	if (variance > 0)
		snprintf(buf, ERROR_TEXT, " +- %s",
			 bytes ? human_bytes(error, a) : human_number(error, a));
	return buf;
}

static double variance(const struct group *g, enum cost cost, bool bytes)
{
	if (cost == COST_LEAKED)
		return bytes ? g->variance_live : g->variance_blocks;
	if (cost == COST_ALLOCATED)
		return bytes ? g->variance_allocated : g->variance_allocations;
	return 0;
}

static void write_cost(const struct group *g, enum cost cost, FILE *out)
{
	char a[32], b[32], e[ERROR_TEXT], n[ERROR_TEXT];
	uint64_t count = group_count(g, cost);
	const char *on = term_on(out, TERM_AMOUNT), *off = term_off(out);

	if (cost_is_bytes(cost))
		fprintf(out, "%s%12s%s%s in %s%s %s%s", on, human_bytes(group_cost(g, cost), a),
			off, text_error(variance(g, cost, true), true, e), human_number(count, b),
			text_error(variance(g, cost, false), false, n), cost_unit(cost),
			plural(count));
	else if (cost_is_of_faults(cost))
		fprintf(out, "%s%12s%s of %s", on, human_number(group_cost(g, cost), a), off,
			human_number(g->allocations, b));
	else
		fprintf(out, "%s%12s%s of %s", on, human_number(group_cost(g, cost), a), off,
			human_bytes(
			    cost == COST_TEMPORARY ? g->temporary_bytes : g->allocated_bytes, b));
}

/* Each stack has its own bound; all together cannot exceed that of the recording. */
static uint64_t uncertain(const struct model *m, const struct group *g)
{
	return g->uncertain_blocks < m->doubts.uncertain_blocks ? g->uncertain_blocks
								: m->doubts.uncertain_blocks;
}

static void write_label(const struct place *p, enum group_by by, FILE *out)
{
	const char *function = printable(p->at.function);

	if (by == GROUP_BY_FUNCTION)
		fprintf(out, ": %s%s%s%s", function, p->at.library ? "  [" : "",
			p->at.library ? printable(p->at.library) : "", p->at.library ? "]" : "");
	else if (by == GROUP_BY_LIBRARY)
		fprintf(out, ": %s", p->at.library ? printable(p->at.library) : "(no file)");
	else if (by == GROUP_BY_CLASS && p->scope)
		fprintf(out, ": %.*s", (int)p->scope, function);
	else if (by == GROUP_BY_CLASS)
		fputs(": (no class)", out);
}

static void write_place(struct model *m, const struct places *p, const struct place *at,
			enum cost cost, uint32_t frames, FILE *out)
{
	const struct group *heaviest = &m->sums.group[at->example];
	const char *growth = cost == COST_LEAKED ? growth_words(growth_of(m, at->example)) : NULL;
	bool doubtful = cost == COST_LEAKED && at->sum.uncertain_blocks;
	/* With them the line would be wider than a screen. */
	const char *next = doubtful || variance(&at->sum, cost, true) > 0 ? ";\n        " : "; ";
	char a[32];

	write_cost(&at->sum, cost, out);
	if (growth && at->stacks == 1)
		fprintf(out, ", %s", growth);
	write_label(at, p->by, out);
	if (doubtful) {
		fprintf(out, "%s%s of these may have been freed", next,
			human_number(uncertain(m, &at->sum), a));
		next = "; ";
	}
	if (at->stacks > 1)
		fprintf(out, "%s%s, the one with most (%s%s%s):", next,
			counted(at->stacks, "stack"),
			cost_is_bytes(cost) ? human_bytes(group_cost(heaviest, cost), a)
					    : human_number(group_cost(heaviest, cost), a),
			growth ? ", " : "", growth ? growth : "");
	fputc('\n', out);
	text_stack(m, at->example, frames, "              ", out);
}

void site_list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
	       uint32_t top, uint32_t frames, FILE *out)
{
	struct places p;
	uint32_t n;

	if (places_find(m, o->by, cost, false, &p)) {
		fprintf(out, "\n%s: out of memory\n", title);
		return;
	}
	n = (uint32_t)p.at.n;
	if (n) {
		fputc('\n', out);
		text_bold(out, title);
	}
	for (uint32_t i = 0; i < n && i < top; i++)
		write_place(m, &p, &p.at.at[i], cost, frames, out);
	if (n > top)
		fprintf(out, "%12s %s; --top %u shows %s\n", "...", counted(n - top, "more site"),
			n, n - top == 1 ? "it" : "them");
	places_free(&p);
}

void site_where(yajl_gen g, const struct place *p, enum group_by by)
{
	char *class = strndup(p->at.function, p->scope);

	if (by == GROUP_BY_LINE || by == GROUP_BY_FUNCTION || by == GROUP_BY_STACK)
		json_text(g, "function", p->at.function);
	if (by == GROUP_BY_CLASS)
		json_text(g, "class", p->scope ? class : NULL);
	else
		json_text(g, "library", p->at.library);
	if (by == GROUP_BY_LINE || by == GROUP_BY_STACK) {
		json_text(g, "source", p->at.source);
		json_number(g, "line", p->at.source ? p->at.line : 0);
	}
	free(class);
}

void sites_json(yajl_gen g, const struct model *m, const struct places *p,
		void (*sums)(yajl_gen g, const struct model *m, const struct group *of))
{
	json_text(g, "group_by", group_by_text(p->by));
	json_name(g, "sites");
	yajl_gen_array_open(g);
	vec_for_each (&p->at, at) {
		yajl_gen_map_open(g);
		site_where(g, at, p->by);
		json_number(g, "stacks", at->stacks);
		json_number(g, "backtrace_id", at->example);
		at->sum.uncertain_blocks = uncertain(m, &at->sum);
		sums(g, m, &at->sum);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}
