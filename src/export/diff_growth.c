/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/diff_growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_cpp(const char *library)
{
	return !strncmp(library, "libstdc++", 9) || !strncmp(library, "libc++", 6);
}

/* The frame to which the change of a stack counts: one that a change of its callers leaves alone. */
static const struct frame *site_of(const struct diff *d, const struct diff_row *r)
{
	const struct diff_node *n = &d->nodes.at[r->node];
	const char *allocator = n->frame.library;

	while (n->parent) {
		n = &d->nodes.at[n->parent - 1];
		if (!n->frame.library || !allocator ||
		    (strcmp(n->frame.library, allocator) != 0 && !is_cpp(n->frame.library)))
			break;
	}
	/* A static program has its allocator in itself: the allocator's caller is the first frame. */
	if (!n->parent && d->nodes.at[r->node].parent)
		n = &d->nodes.at[d->nodes.at[r->node].parent - 1];
	return &n->frame;
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_place(const void *a, const void *b)
{
	const struct frame *x = ((const struct diff_growth *)a)->frame,
			   *y = ((const struct diff_growth *)b)->frame;
	int order = compare_text(x->function, y->function);

	if (!order)
		order = compare_text(x->source, y->source);
	return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static int by_change(const void *a, const void *b)
{
	const struct diff_growth *x = a, *y = b;

	if (x->change != y->change)
		return x->change < y->change ? 1 : -1;
	return by_place(a, b);
}

int diff_growths_find(const struct diff *d, struct diff_growths *g)
{
	size_t kept = 0;

	*g = (struct diff_growths){0};
	vec_for_each (&d->rows, r) {
		struct diff_growth one = {site_of(d, r), (int64_t)(r->after - r->before)};

		if (vec_push(&g->list, one)) {
			vec_free(&g->list);
			return -ENOMEM;
		}
	}
	if (!g->list.n)
		return 0;
	vec_sort(&g->list, by_place);
	for (size_t i = 1; i < g->list.n; i++) {
		if (by_place(&g->list.at[kept], &g->list.at[i]) != 0)
			g->list.at[++kept] = g->list.at[i];
		else
			g->list.at[kept].change += g->list.at[i].change;
	}
	g->list.n = kept + 1;
	vec_sort(&g->list, by_change);
	return 0;
}
