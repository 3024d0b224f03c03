/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/text/ascii_tree.h"
#include "formats/session.h"
#include "lib/path.h"
#include "lib/printable.h"
#include "lib/vec.h"
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ascii_node {
	const char *function, *source; /* owned by the model */
	uint32_t line;
	uint64_t size, count, first_ns, last_ns;
	struct ascii_node *child, *last_child, *next;
};

/* First and last time of the allocations that count, for each stack. */
struct times {
	uint64_t first_ns, last_ns;
};

struct columns {
	int count, first, last; /* widths */
};

static bool is_frame(const struct ascii_node *e, const struct frame *f)
{
	if (e->source && f->source)
		return e->line == f->line && !strcmp(e->source, f->source);
	return !e->source && !f->source && !strcmp(e->function, f->function);
}

static struct ascii_node *child_of(struct ascii_node *parent, const struct frame *f)
{
	struct ascii_node *e;

	for (e = parent->child; e; e = e->next) {
		if (is_frame(e, f))
			return e;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->function = f->function;
	e->source = f->source;
	e->line = f->line;
	if (parent->last_child)
		parent->last_child->next = e;
	else
		parent->child = e;
	parent->last_child = e;
	return e;
}

static void count_group(struct ascii_node *e, const struct group *g, enum cost cost,
			const struct times *s)
{
	if (!e->count || s->first_ns < e->first_ns)
		e->first_ns = s->first_ns;
	if (s->last_ns > e->last_ns)
		e->last_ns = s->last_ns;
	e->size += group_cost(g, cost);
	e->count += group_count(g, cost);
}

static int add_stack(struct model *m, struct ascii_node *root, uint32_t id, enum cost cost,
		     const struct times *span)
{
	static const struct frame no_stack = {.function = "(no stack)"},
				  incomplete = {.function = "(incomplete)"};
	const struct model_stack *s = &m->stacks.at[id];
	const struct group *g = &m->sums.group[id];
	struct ascii_node *at = root;

	count_group(root, g, cost, span);
	if (!s->n || !(s->flags & SS_STACK_COMPLETE)) {
		at = child_of(at, s->n ? &incomplete : &no_stack);
		if (!at)
			return -ENOMEM;
		count_group(at, g, cost, span);
	}
	for (uint32_t i = s->n; i-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(m, m->stacks.pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0) {
			at = child_of(at, &f[n]);
			if (!at)
				return -ENOMEM;
			count_group(at, g, cost, span);
		}
	}
	return 0;
}

static struct times *spans(const struct model *m, enum cost cost)
{
	struct times *s = calloc(m->stacks.n, sizeof(*s));

	for (uint32_t i = 0; s && cost != COST_LEAKED && i < m->stacks.n; i++)
		s[i] = (struct times){m->sums.group[i].first_ns, m->sums.group[i].last_ns};
	if (!s || cost != COST_LEAKED)
		return s;
	vec_for_each (&m->blocks, b) {
		struct times *at = &s[b->stack < m->stacks.n ? b->stack : 0];

		if (!at->last_ns || b->time_ns < at->first_ns)
			at->first_ns = b->time_ns;
		if (b->time_ns > at->last_ns)
			at->last_ns = b->time_ns;
	}
	return s;
}

static void free_entry(struct ascii_node *e)
{
	struct ascii_node *next;

	for (struct ascii_node *c = e->child; c; c = next) {
		next = c->next;
		free_entry(c);
	}
	free(e);
}

/* Formats "09s", "01m05s", "02h00m01s", "1 days 02h00m01s". */
static const char *time_text(uint64_t ns, char *buf, size_t size)
{
	uint64_t s = ns / 1000000000u, d = s / 86400;
	unsigned int h = (unsigned int)(s / 3600 % 24), m = (unsigned int)(s / 60 % 60),
		     sec = (unsigned int)(s % 60);

	if (d)
		snprintf(buf, size, "%llu days %02uh%02um%02us", (unsigned long long)d, h, m, sec);
	else if (h)
		snprintf(buf, size, "%02uh%02um%02us", h, m, sec);
	else if (m)
		snprintf(buf, size, "%02um%02us", m, sec);
	else
		snprintf(buf, size, "%02us", sec);
	return buf;
}

const char *ascii_size(uint64_t size, char *buf, size_t room)
{
	static const char *const unit[] = {"", "KB", "MB", "GB", "TB", "PB", "EB"};
	double v = (double)size;
	int u = 0;

	while (v >= 1000 && u < 6) {
		v /= 1000;
		u++;
	}
	if (u)
		snprintf(buf, room, "%7.3f %s", v, unit[u]);
	else
		snprintf(buf, room, "%7llu   ", (unsigned long long)size);
	return buf;
}

static void widen(const struct ascii_node *e, struct columns *c)
{
	char buf[40];
	int n;

	n = snprintf(buf, sizeof(buf), "%llu", (unsigned long long)e->count);
	c->count = n > c->count ? n : c->count;
	n = (int)strlen(time_text(e->first_ns, buf, sizeof(buf)));
	c->first = n > c->first ? n : c->first;
	n = (int)strlen(time_text(e->last_ns, buf, sizeof(buf)));
	c->last = n > c->last ? n : c->last;
	for (const struct ascii_node *k = e->child; k; k = k->next)
		widen(k, c);
}

static void write_label(const struct ascii_node *e, FILE *out)
{
	if (!e->function) {
		fputs("▒", out);
		return;
	}
	fputs(printable(e->function), out);
	if (e->source)
		fprintf(out, " [%s:%u]", printable(path_base(e->source)), e->line);
}

/* @indent: one column for each ancestor except the root, "|" if that has more children. */
static void write_entry(const struct ascii_node *e, const struct columns *c, char *indent,
			size_t depth, FILE *out)
{
	char size[40], first[40], last[40];

	fprintf(out, "%s %-*llu %-*s %-*s %s", ascii_size(e->size, size, sizeof(size)), c->count,
		(unsigned long long)e->count, c->first,
		time_text(e->first_ns, first, sizeof(first)), c->last,
		time_text(e->last_ns, last, sizeof(last)), indent);
	if (e->function)
		fputs(e->next ? "├" : "└", out);
	write_label(e, out);
	putc('\n', out);
	if (e->function)
		indent[depth++] = e->next ? '|' : ' ';
	indent[depth] = 0;
	for (const struct ascii_node *k = e->child; k; k = k->next)
		write_entry(k, c, indent, depth, out);
	if (depth)
		indent[depth - 1] = 0;
}

static void write_all(const struct ascii_node *root, char *indent, FILE *out)
{
	struct columns c = {5, 5, 4};

	widen(root, &c);
	fprintf(out, "%-10s %-*s %-*s %-*s %s\n", "SIZE", c.count, "COUNT", c.first, "FIRST",
		c.last, "LAST", "SOURCE");
	if (root->count)
		write_entry(root, &c, indent, 0, out);
}

int ascii_tree_write(struct model *m, enum cost cost, FILE *out)
{
	struct ascii_node *root = calloc(1, sizeof(*root));
	struct times *span = spans(m, cost);
	size_t deepest = 0;
	char *indent = NULL;
	int ret = root && span ? 0 : -ENOMEM;

	for (uint32_t id = 0; !ret && id < m->stacks.n; id++) {
		if (m->stacks.at[id].n > deepest)
			deepest = m->stacks.at[id].n;
		if (group_count(&m->sums.group[id], cost))
			ret = add_stack(m, root, id, cost, &span[id]);
	}
	if (!ret) {
		indent = calloc(deepest + 1, MAX_INLINED);
		if (indent)
			write_all(root, indent, out);
		else
			ret = -ENOMEM;
	}
	free(indent);
	free(span);
	if (root)
		free_entry(root);
	return ret ? ret : ferror(out) ? -EIO : 0;
}
