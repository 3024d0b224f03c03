/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "formats/session.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/stack_order.h"

#define MAX_INDENT 400

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Without a line, the address of the call tells sites of one function apart. */
static bool same_line(const struct tree_node *n, const struct frame *f)
{
	if (!n->source && !f->source)
		return n->address == f->address;
	return n->line == f->line && same_text(n->source, f->source);
}

static bool is_node_of(const struct tree_node *n, const struct frame *f, bool site)
{
	return n->site == site && !strcmp(n->function, f->function) &&
	       same_text(n->library, f->library) && (!site || same_line(n, f));
}

static struct tree_node *child_of(struct tree_node *parent, const struct frame *f, bool site)
{
	struct tree_node *n;

	for (n = parent->child; n; n = n->next) {
		if (!is_node_of(n, f, site))
			continue;
		if (!same_line(n, f))
			n->several_lines = true;
		return n;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->function = f->function;
	n->library = f->library;
	n->source = f->source;
	n->line = f->line;
	n->address = f->address;
	n->offset = f->offset;
	n->site = site;
	n->depth = parent->depth + 1;
	n->next = parent->child;
	parent->child = n;
	return n;
}

struct tree_node *tree_child(struct tree_node *parent, const struct frame *f)
{
	return child_of(parent, f, false);
}

static const struct shown_frame no_stack = {.at = {.function = "(no stack)"}},
				incomplete = {.at = {.function = "(incomplete)"}};

/* Moves *@at to its child for @f, and adds @weight to it. */
static int enter(struct tree_node **at, const struct shown_frame *f, bool site,
		 const struct tree_node *weight)
{
	*at = child_of(*at, &f->at, site);
	if (!*at)
		return -ENOMEM;
	(*at)->runtimes |= f->runtimes;
	(*at)->cost += weight->cost;
	(*at)->count += weight->count;
	return 0;
}

static int add_stack(struct model *m, struct tree_node *root, uint32_t id, bool bottom_up,
		     const struct tree_node *weight)
{
	const struct model_stack *of = &m->stacks.at[id];
	const struct shown_frame *mark = !of->n				 ? &no_stack
					 : of->flags & SS_STACK_COMPLETE ? NULL
									 : &incomplete;
	struct tree_node *at = root;
	struct shown_stack s;
	int ret = shown_stack(m, id, &s);
	/* Bottom-up, the cost is that of the user's own code. */
	uint32_t first = bottom_up ? shown_first(m, &s) : 0;

	root->cost += weight->cost;
	root->count += weight->count;
	if (mark && !bottom_up && !ret)
		ret = enter(&at, mark, false, weight);
	for (uint32_t i = first; i < s.n && !ret; i++) {
		uint32_t k = bottom_up ? i : s.n - 1 - (i - first);

		ret = enter(&at, &s.at[k], k == s.site, weight);
	}
	if (mark && bottom_up && !ret)
		ret = enter(&at, mark, false, weight);
	return ret;
}

static int compare_nodes(const struct tree_node *a, const struct tree_node *b)
{
	int order = strcmp(a->function, b->function);

	if (a->cost != b->cost)
		return a->cost > b->cost ? -1 : 1;
	if (order || a->site != b->site)
		return order ? order : a->site - b->site;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

void tree_sort(struct tree_node *n)
{
	struct tree_node *sorted = NULL, *next;

	for (struct tree_node *c = n->child; c; c = next) {
		struct tree_node **at = &sorted;

		next = c->next;
		while (*at && compare_nodes(*at, c) <= 0)
			at = &(*at)->next;
		c->next = *at;
		*at = c;
	}
	n->child = sorted;
	for (struct tree_node *c = sorted; c; c = c->next)
		tree_sort(c);
}

struct tree_node *tree_new(void)
{
	struct tree_node *root = calloc(1, sizeof(*root));

	if (root)
		root->function = "all";
	return root;
}

static struct tree_node *build(struct model *m, enum cost cost, bool bottom_up)
{
	struct tree_node *root = tree_new();
	uint32_t n, *ids = stack_order(m, cost, &n);
	int err = root && ids ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < n; i++) {
		const struct group *g = &m->sums.group[ids[i]];
		struct tree_node weight = {.cost = group_cost(g, cost),
					   .count = group_count(g, cost)};

		err = add_stack(m, root, ids[i], bottom_up, &weight);
	}
	free(ids);
	if (err) {
		tree_free(root);
		return NULL;
	}
	tree_sort(root);
	return root;
}

struct tree_node *tree_build(struct model *m, enum cost cost)
{
	return build(m, cost, false);
}

struct tree_node *tree_build_bottom_up(struct model *m, enum cost cost)
{
	return build(m, cost, true);
}

void tree_free(struct tree_node *n)
{
	struct tree_node *next;

	if (!n)
		return;
	for (struct tree_node *c = n->child; c; c = next) {
		next = c->next;
		tree_free(c);
	}
	free(n);
}

static void write_line(const struct tree_node *n, const struct tree_node *root, enum cost cost,
		       const char *indent, bool last, FILE *out)
{
	const struct frame f = {.function = n->function,
				.library = n->library,
				.source = n->source,
				.offset = n->offset};
	char a[32], library[TEXT_WHERE], where[2 * TEXT_WHERE] = "";
	int column;

	cost_is_bytes(cost) ? human_bytes(n->cost, a) : human_number(n->cost, a);
	column = fprintf(out, "%s%s ", indent, last ? "`-" : "|-");
	column += fprintf(out, "%s%s%s %4.1f%% ", term_on(out, TERM_AMOUNT), a, term_off(out),
			  root->cost ? 100.0 * (double)n->cost / (double)root->cost : 0.0);
	column -= (int)(strlen(term_on(out, TERM_AMOUNT)) + strlen(term_off(out)));
	if (n->site && n->source)
		snprintf(where, TEXT_WHERE, " %s:%u", printable(n->source), n->line);
	if (*text_library(&f, n->site, library))
		snprintf(where + strlen(where), TEXT_WHERE, " %.*s", TEXT_WHERE - 2, library);
	text_name(printable(n->function), where, n->site, (size_t)column, out);
	putc('\n', out);
}

static void write_node(const struct tree_node *n, const struct tree_node *root, enum cost cost,
		       uint64_t least, char *indent, size_t depth, FILE *out)
{
	uint64_t folded = 0, folded_count = 0;
	uint32_t branches = 0;
	char a[TEXT_COST];

	for (const struct tree_node *c = n->child; c; c = c->next) {
		bool last = !c->next; /* smaller branches follow it */

		if (c->cost < least) {
			folded += c->cost;
			folded_count += c->count;
			branches++;
			continue;
		}
		write_line(c, root, cost, indent, last, out);
		if (depth + 3 < MAX_INDENT) {
			/* A chain without branches is not indented further. */
			bool chain = c->child && !c->child->next && !n->child->next;

			if (!chain)
				strcpy(indent + depth, last ? "  " : "| ");
			write_node(c, root, cost, least, indent, chain ? depth : depth + 2, out);
			indent[depth] = 0;
		}
	}
	if (branches)
		fprintf(out, "%s`- %s, %u smaller branch%s\n", indent,
			text_cost(cost, folded, folded_count, a), branches,
			branches == 1 ? "" : "es");
}

void tree_write(const struct tree_node *root, enum cost cost, double least, FILE *out)
{
	char sum[TEXT_COST], indent[MAX_INDENT + 8] = "";

	if (cost_is_bytes(cost))
		fprintf(out, "%s: ", cost_text(cost));
	fprintf(out, "%s\n", text_cost(cost, root->cost, root->count, sum));
	write_node(root, root, cost, (uint64_t)(least * (double)root->cost), indent, 0, out);
}

void folded_name(const char *s, FILE *out)
{
	for (s = printable(s); *s; s++)
		fputc(*s == ';' ? ':' : *s, out);
}

static void folded_frame(const struct frame *f, const char *name, bool line, FILE *out)
{
	folded_name(name, out);
	if (!line || !f->source)
		return;
	putc(' ', out);
	folded_name(f->source, out);
	fprintf(out, ":%u", f->line);
}

int folded_stack(struct model *m, uint32_t id, bool every, FILE *out)
{
	const struct model_stack *of = &m->stacks.at[id];
	const char *separator = "";
	struct shown_stack s;
	int ret = every ? shown_every(m, id, &s) : shown_stack(m, id, &s);

	if (!of->n) {
		fputs("(no stack)", out);
	} else if (!(of->flags & SS_STACK_COMPLETE)) {
		fputs("(incomplete)", out);
		separator = ";";
	}
	for (uint32_t i = s.n; i-- > 0; separator = ";") {
		fputs(separator, out);
		folded_frame(&s.at[i].at, every ? s.at[i].full : s.at[i].at.function,
			     m->shown.lines, out);
	}
	return ret;
}

int folded_write(struct model *m, enum cost cost, FILE *out)
{
	uint32_t n, *ids = stack_order(m, cost, &n);
	int ret = ids ? 0 : -ENOMEM;

	for (uint32_t i = 0; !ret && i < n; i++) {
		ret = folded_stack(m, ids[i], false, out);
		fprintf(out, " %llu\n",
			(unsigned long long)group_cost(&m->sums.group[ids[i]], cost));
	}
	free(ids);
	return ret;
}
