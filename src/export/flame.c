/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/flame.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "export/svg.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "model/model.h"
#include "model/sums/weight.h"

/* Of the graph without its script, which lays it out anew for the window. */
#define WIDTH	    1200.0
#define ROW	    18
#define HEAD	    52
#define LEAST	    5000.0 /* frames narrower than 1/LEAST are not drawn */
#define CHAR_WIDTH  7.3
#define MARGIN	    3
#define MAX_COMMAND 140 /* characters of the command line that fit */

struct drawing {
	const struct flame *f;
	const struct tree_node *root;
	FILE *out;
	uint32_t deepest;
	uint64_t largest; /* largest change of a node */
};

/* svg_files.S */
extern const char flame_js[], flame_css[];

/* Warm colours for the program, green for the allocator's and system's libraries; the hue depends
 * on the name. */
static void colour(const struct tree_node *n, char *buf, size_t size)
{
	uint32_t h = 2166136261u;
	bool system =
	    n->runtimes ||
	    (n->library && (!strncmp(n->library, "lib", 3) || !strncmp(n->library, "ld-", 3)));

	for (const char *p = n->function; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	if (n->function[0] == '(')
		snprintf(buf, size, "#b8b8b8");
	else if (system)
		snprintf(buf, size, "hsl(%u,45%%,%u%%)", 95 + h % 60, 62 + h / 64 % 12);
	else
		snprintf(buf, size, "hsl(%u,78%%,%u%%)", 8 + h % 40, 58 + h / 64 % 12);
}

/* White if nothing changed; the larger the change relative to the largest, the stronger the colour.
 */
static void colour_of_change(const struct tree_node *n, uint64_t largest, char *buf, size_t size)
{
	uint64_t change = n->after > n->before ? n->after - n->before : n->before - n->after;
	double part = largest ? (double)change / (double)largest : 0;
	/* Black text must be readable on the strongest colours. */
	int pale = 235 - (int)(125 * sqrt(part));

	if (!change)
		snprintf(buf, size, "#f0f0f0");
	else if (n->after > n->before)
		snprintf(buf, size, "rgb(250,%d,%d)", pale - 15, pale - 15);
	else
		snprintf(buf, size, "rgb(%d,%d,250)", pale, pale + 15);
}

static const char *amount(const struct drawing *g, uint64_t v, char *buf)
{
	return cost_is_bytes(g->f->cost) ? human_bytes(v, buf) : human_number(v, buf);
}

static void write_title(const struct drawing *g, const struct tree_node *n)
{
	const struct tree_node *root = g->root;
	char a[TEXT_COST], b[32], c[32];

	fputs("<title>", g->out);
	svg_text(n->function, g->out);
	if (n->source && n->line && !n->several_lines) {
		putc(' ', g->out);
		svg_text(n->source, g->out);
		fprintf(g->out, ":%u", n->line);
	}
	if (n->library) {
		fputs(" [", g->out);
		svg_text(n->library, g->out);
		if (n->site && !n->source)
			fprintf(g->out, "+0x%llx", (unsigned long long)n->offset);
		fputs("]", g->out);
	}
	if (g->f->differential)
		fprintf(
		    g->out, " &#8212; %s%s (%s, was %s)</title>", n->after < n->before ? "-" : "+",
		    amount(g, n->after > n->before ? n->after - n->before : n->before - n->after,
			   a),
		    amount(g, n->after, b), amount(g, n->before, c));
	else
		fprintf(g->out, " &#8212; %s, %.2f%%</title>",
			text_cost(g->f->cost, n->cost, n->count, a),
			root->cost ? 100.0 * (double)n->cost / (double)root->cost : 0.0);
}

static void write_label(const struct drawing *g, const struct tree_node *n, double width)
{
	int room = (int)((width - 2 * MARGIN) / CHAR_WIDTH);
	char label[512];

	if (room < 3)
		return;
	snprintf(label, sizeof(label), "%.*s", room > 500 ? 500 : room, n->function);
	if ((int)strlen(n->function) > room)
		strcpy(label + room - 2, "..");
	svg_text(label, g->out);
}

/* A graph of nothing has its root. */
static double width_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole * WIDTH : WIDTH;
}

static void write_node(const struct drawing *g, const struct tree_node *n, double x)
{
	const struct tree_node *root = g->root;
	double width = width_of(n->cost, root->cost), count = width_of(n->count, root->count);
	int y = HEAD + (int)(g->f->icicle ? n->depth : g->deepest - n->depth) * ROW;
	char fill[40];

	if (width < WIDTH / LEAST && count < WIDTH / LEAST)
		return;
	if (g->f->differential)
		colour_of_change(n, g->largest, fill, sizeof(fill));
	else
		colour(n, fill, sizeof(fill));
	fprintf(g->out, "<g class=\"f\" data-d=\"%u\" data-w=\"%.3f\" data-cw=\"%.3f\">", n->depth,
		width, count);
	write_title(g, n);
	fprintf(g->out,
		"<rect x=\"%.3f\" y=\"%d\" width=\"%.3f\" height=\"%d\" fill=\"%s\"%s/>"
		"<text x=\"%.3f\" y=\"%d\"%s>",
		x, y, width, ROW - 1, fill, n->site ? " stroke=\"#900\"" : "", x + MARGIN, y + 13,
		n->site ? " font-weight=\"bold\"" : "");
	write_label(g, n, width);
	fputs("</text></g>\n", g->out);
	for (const struct tree_node *c = n->child; c; c = c->next) {
		write_node(g, c, x);
		x += width_of(c->cost, root->cost);
	}
}

static uint32_t depth_of(const struct tree_node *n)
{
	uint32_t deepest = n->depth;

	for (const struct tree_node *c = n->child; c; c = c->next) {
		uint32_t d = depth_of(c);

		deepest = d > deepest ? d : deepest;
	}
	return deepest;
}

static uint64_t largest_change(const struct tree_node *n)
{
	uint64_t most = n->after > n->before ? n->after - n->before : n->before - n->after;

	for (const struct tree_node *c = n->child; c; c = c->next) {
		uint64_t v = largest_change(c);

		most = v > most ? v : most;
	}
	return most;
}

static void write_head(const struct drawing *g, int height)
{
	fprintf(g->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"100%%\" "
		"height=\"%d\" font-family=\"monospace\" font-size=\"12\" data-root=\"%s\" "
		"data-widths=\"%s\">\n"
		"<style>\n%s</style>\n"
		"<rect id=\"page\" width=\"100%%\" height=\"100%%\" fill=\"#fffdf6\"/>\n"
		"<g id=\"head\">\n<text x=\"%.0f\" y=\"22\" font-size=\"16\">",
		WIDTH, height, height, g->f->icicle ? "top" : "bottom",
		cost_is_bytes(g->f->cost) ? "bytes" : "numbers", flame_css, WIDTH / 2);
	svg_text(g->f->title, g->out);
	fprintf(g->out, "</text>\n<text x=\"%.0f\" y=\"40\">", WIDTH / 2);
	svg_text(g->f->subtitle, g->out);
	fputs("</text>\n</g>\n<g id=\"frames\" role=\"img\" aria-label=\"", g->out);
	svg_text(g->f->title, g->out);
	fputs("\">\n", g->out);
}

int flame_write(const struct flame *f, const struct tree_node *root, FILE *out)
{
	struct drawing g = {.f = f, .root = root, .out = out, .deepest = depth_of(root)};

	if (f->differential)
		g.largest = largest_change(root);
	write_head(&g, HEAD + (int)(g.deepest + 1) * ROW + 8);
	write_node(&g, root, 0);
	fprintf(out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", flame_js);
	return ferror(out) ? -EIO : 0;
}

int flame_of_model(const struct model *m, const struct tree_node *root, enum cost cost, bool icicle,
		   FILE *out)
{
	struct flame f = {.cost = cost, .icicle = icicle};
	char title[160], sum[TEXT_COST], *subtitle;
	bool bytes = cost_is_bytes(cost);
	int ret;

	snprintf(title, sizeof(title), "memprof: %s%s%s%s", bytes ? cost_text(cost) : "",
		 bytes ? ", " : "", text_cost(cost, root->cost, root->count, sum),
		 model_is_estimated(m) ? " (estimated)" : "");
	if (asprintf(&subtitle, "%.*s%s (pid %u, %.1f s)", MAX_COMMAND, m->info.cmdline,
		     strlen(m->info.cmdline) > MAX_COMMAND ? ".." : "", m->info.pid,
		     (double)m->facts.end_ns / 1e9) < 0)
		return -ENOMEM;
	f.title = title;
	f.subtitle = subtitle;
	ret = flame_write(&f, root, out);
	free(subtitle);
	return ret;
}
