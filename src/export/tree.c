/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export/text.h"
#include "formats/session.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/stack_order.h"

#define MAX_INLINED 64
#define MAX_INDENT  400

struct tree_node *tree_child(struct tree_node *parent, const struct frame *f)
{
	struct tree_node *n;

	for (n = parent->child; n; n = n->next) {
		if (!strcmp(n->function, f->function) &&
		    (n->library == f->library ||
		     (n->library && f->library && !strcmp(n->library, f->library))))
			return n;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->function = f->function;
	n->library = f->library;
	n->depth = parent->depth + 1;
	n->next = parent->child;
	parent->child = n;
	return n;
}

static const struct frame no_stack = {.function = "(no stack)"},
			  incomplete = {.function = "(incomplete)"};

/* Moves *@at to its child for @f, and adds @weight to it. */
static int enter(struct tree_node **at, const struct frame *f, const struct tree_node *weight)
{
	*at = tree_child(*at, f);
	if (!*at)
		return -ENOMEM;
	(*at)->cost += weight->cost;
	(*at)->count += weight->count;
	return 0;
}

/* Enters all frames of one address. */
static int enter_pc(struct tree_node **at, struct model *m, uint64_t pc, bool bottom_up,
		    const struct tree_node *weight)
{
	struct frame f[MAX_INLINED];
	uint32_t n = model_frames(m, pc, f, MAX_INLINED);
	int ret = 0;

	for (uint32_t i = 0; i < n && !ret; i++)
		ret = enter(at, &f[bottom_up ? i : n - 1 - i], weight);
	return ret;
}

static int add_stack(struct model *m, struct tree_node *root, uint32_t id, bool bottom_up,
		     const struct tree_node *weight)
{
	const struct model_stack *s = &m->stacks.at[id];
	const struct frame *mark = !s->n			  ? &no_stack
				   : s->flags & SS_STACK_COMPLETE ? NULL
								  : &incomplete;
	struct tree_node *at = root;
	int ret = 0;

	root->cost += weight->cost;
	root->count += weight->count;
	if (mark && !bottom_up)
		ret = enter(&at, mark, weight);
	for (uint32_t i = 0; i < s->n && !ret; i++)
		ret = enter_pc(&at, m, m->stacks.pc.at[s->first + (bottom_up ? i : s->n - 1 - i)],
			       bottom_up, weight);
	if (mark && bottom_up && !ret)
		ret = enter(&at, mark, weight);
	return ret;
}

void tree_sort(struct tree_node *n)
{
	struct tree_node *sorted = NULL, *next;

	for (struct tree_node *c = n->child; c; c = next) {
		struct tree_node **at = &sorted;

		next = c->next;
		while (*at && ((*at)->cost > c->cost || ((*at)->cost == c->cost &&
							 strcmp((*at)->function, c->function) < 0)))
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
		fprintf(out, "%s%s %s %4.1f%% %s%s%s%s\n", indent, last ? "`-" : "|-",
			cost_is_bytes(cost) ? human_bytes(c->cost, a) : human_number(c->cost, a),
			root->cost ? 100.0 * (double)c->cost / (double)root->cost : 0.0,
			printable(c->function), c->library ? " [" : "",
			c->library ? printable(c->library) : "", c->library ? "]" : "");
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

void folded_stack(struct model *m, uint32_t id, FILE *out)
{
	const struct model_stack *s = &m->stacks.at[id];
	bool first = true;

	if (!s->n)
		fputs("(no stack)", out);
	else if (!(s->flags & SS_STACK_COMPLETE)) {
		fputs("(incomplete)", out);
		first = false;
	}
	for (uint32_t k = s->n; k-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t nf = model_frames(m, m->stacks.pc.at[s->first + k], f, MAX_INLINED);

		while (nf-- > 0) {
			if (!first)
				fputc(';', out);
			first = false;
			folded_name(f[nf].function, out);
		}
	}
}

int folded_write(struct model *m, enum cost cost, FILE *out)
{
	uint32_t n, *ids = stack_order(m, cost, &n);

	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		folded_stack(m, ids[i], out);
		fprintf(out, " %llu\n",
			(unsigned long long)group_cost(&m->sums.group[ids[i]], cost));
	}
	free(ids);
	return 0;
}
