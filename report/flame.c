/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report/flame.h"

#include <errno.h>
#include <string.h>
#include "report/text.h"

#define WIDTH	   1200.0
#define ROW	   18
#define HEAD	   74
#define LEAST	   5000.0 /* a frame narrower than 1/LEAST is not drawn */
#define CHAR_WIDTH 6.7

static const char script[] =
#include "report/flame_script.inc"
    ;

/* XML 1.0 text: markup escaped, what is no XML character replaced. */
static void xml(const char *s, FILE *out)
{
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		switch (*p) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*p < 0x20 || *p >= 0x7f ? '?' : *p, out);
		}
	}
}

/* Warm for the program, green for the allocator's and system's libraries; a hue per name. */
static void colour(const struct node *n, char *buf, size_t size)
{
	uint32_t h = 2166136261u;
	bool system =
	    n->library && (!strncmp(n->library, "lib", 3) || !strncmp(n->library, "ld-", 3));

	for (const char *p = n->function; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	if (n->function[0] == '(')
		snprintf(buf, size, "#b8b8b8");
	else if (system)
		snprintf(buf, size, "hsl(%u,45%%,%u%%)", 95 + h % 60, 62 + h / 64 % 12);
	else
		snprintf(buf, size, "hsl(%u,78%%,%u%%)", 8 + h % 40, 58 + h / 64 % 12);
}

static void write_node(const struct node *n, const struct node *root, enum cost cost, double x,
		       double x_count, uint32_t deepest, FILE *out)
{
	double width = root->cost ? (double)n->cost / (double)root->cost * WIDTH : 0;
	double count = root->count ? (double)n->count / (double)root->count * WIDTH : 0;
	int y = HEAD + (int)(deepest - n->depth) * ROW;
	char a[32], b[32], fill[40];
	int room = (int)(width / CHAR_WIDTH);

	if (width < WIDTH / LEAST && count < WIDTH / LEAST)
		return;
	colour(n, fill, sizeof(fill));
	fprintf(out,
		"<g class=\"f\" data-x=\"%.3f\" data-w=\"%.3f\" data-cx=\"%.3f\" "
		"data-cw=\"%.3f\"><title>",
		x, width, x_count, count);
	xml(n->function, out);
	if (n->library) {
		fputs(" [", out);
		xml(n->library, out);
		fputs("]", out);
	}
	fprintf(out,
		" &#8212; %s in %s %s, %.2f%%</title><rect x=\"%.3f\" y=\"%d\" width=\"%.3f\" "
		"height=\"%d\" fill=\"%s\"/>",
		cost_is_bytes(cost) ? text_bytes(n->cost, a) : text_number(n->cost, a),
		text_number(n->count, b),
		cost == COST_ALLOCATED || !cost_is_bytes(cost) ? "allocations" : "blocks",
		root->cost ? 100.0 * (double)n->cost / (double)root->cost : 0.0, x, y, width,
		ROW - 1, fill);
	fprintf(out, "<text x=\"%.3f\" y=\"%d\">", x + 3, y + 13);
	if (room >= 3) {
		char label[512];

		snprintf(label, sizeof(label), "%.*s%s", room > 500 ? 500 : room, n->function,
			 (int)strlen(n->function) > room ? ".." : "");
		if ((int)strlen(n->function) > room && room > 2)
			strcpy(label + room - 2, "..");
		xml(label, out);
	}
	fputs("</text></g>\n", out);
	for (const struct node *c = n->child; c; c = c->next) {
		write_node(c, root, cost, x, x_count, deepest, out);
		x += root->cost ? (double)c->cost / (double)root->cost * WIDTH : 0;
		x_count += root->count ? (double)c->count / (double)root->count * WIDTH : 0;
	}
}

static uint32_t depth_of(const struct node *n)
{
	uint32_t deepest = n->depth;

	for (const struct node *c = n->child; c; c = c->next) {
		uint32_t d = depth_of(c);

		deepest = d > deepest ? d : deepest;
	}
	return deepest;
}

int flame_write(const struct model *m, const struct node *root, enum cost cost, FILE *out)
{
	uint32_t deepest = depth_of(root);
	int height = HEAD + (int)(deepest + 1) * ROW + 30;
	char a[32], b[32];

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" width=\"100%%\" "
		"font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"11\">\n"
		"<style>.f{cursor:pointer}.f:hover rect{stroke:#000;stroke-width:.6}.f "
		"text{pointer-events:none}.b{cursor:pointer;fill:#06c}.m "
		"rect{fill:#c0c!important}.d{opacity:.45}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fffdf6\"/>\n"
		"<text x=\"%.0f\" y=\"22\" text-anchor=\"middle\" font-size=\"16\">memprof: %s, %s "
		"in %s %s</text>\n",
		WIDTH, height, WIDTH / 2, cost_text(cost),
		cost_is_bytes(cost) ? text_bytes(root->cost, a) : text_number(root->cost, a),
		text_number(root->count, b),
		cost == COST_ALLOCATED || !cost_is_bytes(cost) ? "allocations" : "blocks");
	fprintf(out, "<text x=\"%.0f\" y=\"40\" text-anchor=\"middle\" fill=\"#666\">", WIDTH / 2);
	xml(m->info.cmdline, out);
	fprintf(out, " (pid %u, %.1f s)</text>\n", m->info.pid, (double)m->end_ns / 1e9);
	fprintf(out,
		"<text id=\"reset\" class=\"b\" x=\"10\" y=\"60\" visibility=\"hidden\">reset "
		"zoom</text>\n"
		"<text id=\"widths\" class=\"b\" x=\"%.0f\" y=\"60\" "
		"text-anchor=\"middle\">widths: %s</text>\n"
		"<text id=\"search\" class=\"b\" x=\"%.0f\" y=\"60\" "
		"text-anchor=\"end\">search</text>\n"
		"<text id=\"info\" x=\"10\" y=\"%d\"> </text>\n<text id=\"matched\" x=\"%.0f\" "
		"y=\"%d\" text-anchor=\"end\"> </text>\n<g id=\"frames\">\n",
		WIDTH / 2, cost_is_bytes(cost) ? "bytes" : "numbers", WIDTH - 10, height - 8,
		WIDTH - 10, height - 8);
	write_node(root, root, cost, 0, 0, deepest, out);
	fprintf(out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", script);
	return ferror(out) ? -EIO : 0;
}
