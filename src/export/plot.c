/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "export/svg.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/sums/weight.h"

/* Positions from left to right are in percent, so that a plot of any width has text of one size.
 * Curves have their own coordinates, which the viewer stretches. */
#define WIDTH	    1100 /* px, without the script */
#define LEFT	    2.0	 /* percent of the width, on both sides */
#define CURVE	    1000.0
#define HEAD	    76
#define GAP	    46
#define TICKS	    5
#define MAX_COMMAND 110 /* characters of the command line that fit */
#define HEIGHT	    (HEAD + 250 + GAP + 120 + GAP + 120 + GAP)

/* svg_files.S */
extern const char plot_js[], plot_css[];

struct plot {
	const struct model *m;
	FILE *out;
	double seconds; /* the runtime, never 0 */
};

/* A part of the plot with its own vertical axis. */
struct panel {
	int top, height;
	double most; /* value at the top of the axis */
	bool bytes;
	const char *unit; /* written after the numbers of the axis */
};

/* A curve's name and colour. */
struct key {
	const char *class, *text;
};

static double part_of(const struct plot *p, uint64_t ns)
{
	return (double)ns / 1e9 / p->seconds;
}

static double percent(double part)
{
	return LEFT + part * (100 - 2 * LEFT);
}

/* Inside the panel. */
static double y_of(const struct panel *a, double v)
{
	return a->height - v / a->most * a->height;
}

/* Where text at @part of the width is anchored, so that it is not cut off. */
static const char *anchor(double part)
{
	return part < 0.3 ? "start" : part > 0.7 ? "end" : "middle";
}

/* Return: 1, 2 or 5 times a power of ten, so that about TICKS steps reach @most. */
static double step_for(double most)
{
	double raw = most / TICKS, unit = pow(10, floor(log10(raw)));

	return raw > 5 * unit	? 10 * unit
	       : raw > 2 * unit ? 5 * unit
	       : raw > unit	? 2 * unit
				: unit;
}

/* Steps of bytes are round numbers in their unit. */
static double byte_step(double most)
{
	double unit = 1;

	while (most / unit >= 1024)
		unit *= 1024;
	return fmax(1, step_for(most / unit) * unit);
}

static void value_text(const struct panel *a, double v, char *buf, size_t size)
{
	static const char *const unit[] = {"", "k", "M", "G", "T"};
	char bytes[24];
	int u = 0;

	if (a->bytes) {
		snprintf(buf, size, "%s", human_bytes((uint64_t)v, bytes));
		return;
	}
	while (v >= 1000 && u < 4) {
		v /= 1000;
		u++;
	}
	snprintf(buf, size, "%.3g%s%s", v, unit[u], a->unit);
}

/* The panel's name with its curves', and its grid. */
static void begin_panel(const struct plot *p, struct panel *a, const char *name,
			const struct key *key)
{
	double step, t_step = step_for(p->seconds);

	a->most = a->most > 0 ? a->most * 1.05 : 1;
	step = a->bytes ? byte_step(a->most) : fmax(1, step_for(a->most));
	fprintf(p->out, "<text x=\"%.1f%%\" y=\"%d\" class=\"name\">%s", LEFT, a->top - 8, name);
	for (; key && key->class; key++)
		fprintf(p->out,
			"<tspan class=\"%s\" dx=\"10\">&#9632;</tspan><tspan dx=\"3\">%s</tspan>",
			key->class, key->text);
	fputs("</text>\n", p->out);
	for (int i = 0; i * step <= a->most; i++)
		fprintf(p->out, "<line x1=\"%.1f%%\" x2=\"%.1f%%\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			LEFT, percent(1), a->top + y_of(a, i * step), a->top + y_of(a, i * step));
	for (int i = 0; i * t_step <= p->seconds; i++) {
		double part = i * t_step / p->seconds;

		fprintf(p->out,
			"<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/><text x=\"%.2f%%\" "
			"y=\"%d\" text-anchor=\"%s\">%.4g s</text>\n",
			percent(part), percent(part), a->top, a->top + a->height, percent(part),
			a->top + a->height + 15,
			part < 0.03   ? "start"
			: part > 0.97 ? "end"
				      : "middle",
			i * t_step);
	}
	fprintf(p->out,
		"<svg x=\"%.1f%%\" y=\"%d\" width=\"%.1f%%\" height=\"%d\" viewBox=\"0 0 %.0f %d\" "
		"preserveAspectRatio=\"none\">\n",
		LEFT, a->top, 100 - 2 * LEFT, a->height, CURVE, a->height);
}

/* Numbers of the vertical axis, over the curves. */
static void end_panel(const struct plot *p, const struct panel *a)
{
	double step = a->bytes ? byte_step(a->most) : fmax(1, step_for(a->most));
	char text[48];

	fputs("</svg>\n", p->out);
	for (int i = 1; i * step <= a->most; i++) {
		value_text(a, i * step, text, sizeof(text));
		fprintf(p->out, "<text x=\"%.1f%%\" dx=\"3\" y=\"%.1f\" class=\"over\">%s</text>\n",
			LEFT, a->top + y_of(a, i * step) + 4, text);
	}
}

typedef double (*value_fn)(const struct timeline_point *p, double seconds);

static double live_bytes(const struct timeline_point *p, double seconds)
{
	(void)seconds;
	return (double)p->live_bytes;
}

static double peak_bytes(const struct timeline_point *p, double seconds)
{
	(void)seconds;
	return (double)p->peak_bytes;
}

static double live_blocks(const struct timeline_point *p, double seconds)
{
	(void)seconds;
	return (double)p->live_blocks;
}

static double peak_blocks(const struct timeline_point *p, double seconds)
{
	(void)seconds;
	return (double)p->peak_blocks;
}

static double allocation_rate(const struct timeline_point *p, double seconds)
{
	return seconds > 0 ? (double)p->allocations / seconds : 0;
}

static double free_rate(const struct timeline_point *p, double seconds)
{
	return seconds > 0 ? (double)p->frees / seconds : 0;
}

static double length_of(const struct model *m, const struct timeline_point *p)
{
	uint64_t before = p > m->sums.timeline.at ? p[-1].time_ns : 0;

	return (double)(p->time_ns - before) / 1e9;
}

static void fit(const struct model *m, struct panel *a, value_fn value)
{
	vec_for_each (&m->sums.timeline, p)
		a->most = fmax(a->most, value(p, length_of(m, p)));
}

/* Draws values that hold for the whole length of a point, as an area with steps. */
static void area(const struct plot *p, const struct panel *a, value_fn value, const char *class)
{
	uint64_t before = 0;

	fprintf(p->out, "<path class=\"%s\" d=\"M0 %d", class, a->height);
	vec_for_each (&p->m->sums.timeline, pt) {
		fprintf(p->out, "L%.1f %.1fH%.1f", CURVE * part_of(p, before),
			y_of(a, value(pt, length_of(p->m, pt))), CURVE * part_of(p, pt->time_ns));
		before = pt->time_ns;
	}
	fprintf(p->out, "V%dZ\"/>\n", a->height);
}

/* Draws a line through the values at the end of each point. */
static void line(const struct plot *p, const struct panel *a, value_fn value, const char *class)
{
	fprintf(p->out, "<path class=\"%s\" d=\"M0 %d", class, a->height);
	vec_for_each (&p->m->sums.timeline, pt)
		fprintf(p->out, "L%.1f %.1f", CURVE * part_of(p, pt->time_ns),
			y_of(a, value(pt, length_of(p->m, pt))));
	fputs("\"/>\n", p->out);
}

static void resident(const struct plot *p, const struct panel *a)
{
	char op = 'M';

	if (!p->m->facts.samples.n)
		return;
	fputs("<path class=\"rss\" d=\"", p->out);
	vec_for_each (&p->m->facts.samples, s) {
		if (!s->rss)
			continue; /* the process had ended */
		fprintf(p->out, "%c%.1f %.1f", op, CURVE * part_of(p, s->time_ns),
			y_of(a, (double)s->rss));
		op = 'L';
	}
	fputs("\"/>\n", p->out);
}

static void marks(const struct plot *p)
{
	vec_for_each (&p->m->facts.marks, mark) {
		double part = part_of(p, mark->time_ns);

		fprintf(p->out,
			"<line class=\"mark\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\"/>"
			"<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"%s\" class=\"label\">",
			percent(part), percent(part), HEAD, HEIGHT - GAP, percent(part),
			HEIGHT - 12, anchor(part));
		svg_text(mark->name, p->out);
		fputs("</text>\n", p->out);
	}
}

static void peak(const struct plot *p, const struct panel *a)
{
	const struct model *m = p->m;
	double part = part_of(p, m->sums.peak_time_ns);
	double y = a->top + y_of(a, (double)m->sums.peak_bytes);
	char sum[TEXT_COST];

	if (!m->sums.peak_bytes)
		return;
	fprintf(p->out,
		"<circle cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\" class=\"peak\"/><text x=\"%.2f%%\" "
		"y=\"%.1f\" text-anchor=\"%s\" class=\"label over\">peak %s at %.3f s</text>\n",
		percent(part), y, percent(part), fmax(y - 8, a->top + 12), anchor(part),
		text_cost(COST_PEAK, m->sums.peak_bytes, m->sums.peak_blocks, sum),
		(double)m->sums.peak_time_ns / 1e9);
}

static void head(const struct plot *p)
{
	const struct model *m = p->m;
	char title[MAX_COMMAND + 16], sum[TEXT_COST];

	snprintf(title, sizeof(title), "memprof: %.*s%s", MAX_COMMAND, m->info.cmdline,
		 strlen(m->info.cmdline) > MAX_COMMAND ? ".." : "");
	fprintf(p->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n"
		"<style>\n%s</style>\n"
		"<rect id=\"page\" width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text id=\"title\" x=\"%.1f%%\" y=\"22\" class=\"title\">",
		WIDTH, HEIGHT, plot_css, LEFT);
	svg_text(title, p->out);
	fprintf(p->out, "</text>\n<text x=\"%.1f%%\" y=\"40\">pid %u, %.1f s, %s%s</text>\n", LEFT,
		m->info.pid, (double)m->facts.end_ns / 1e9,
		text_cost(COST_ALLOCATED, m->sums.total.allocated_bytes, m->sums.total.allocations,
			  sum),
		model_is_estimated(m) ? " (estimated)" : "");
}

int plot_write(const struct model *m, FILE *out)
{
	const struct key memory[] = {{"high", "highest live bytes"},
				     {"live", "live bytes"},
				     {m->facts.samples.n ? "rss" : NULL, "resident"},
				     {NULL, NULL}};
	static const struct key calls[] = {
	    {"alloc", "allocations per second"}, {"free", "frees per second"}, {NULL, NULL}};
	struct plot p = {m, out, m->facts.end_ns ? (double)m->facts.end_ns / 1e9 : 1e-9};
	struct panel bytes = {HEAD, 250, 0, true, ""};
	struct panel blocks = {HEAD + 250 + GAP, 120, 0, false, ""};
	struct panel rates = {HEAD + 250 + GAP + 120 + GAP, 120, 0, false, "/s"};

	head(&p);
	fit(m, &bytes, peak_bytes);
	vec_for_each (&m->facts.samples, s)
		bytes.most = fmax(bytes.most, (double)s->rss);
	begin_panel(&p, &bytes, "Memory", memory);
	area(&p, &bytes, peak_bytes, "high");
	line(&p, &bytes, live_bytes, "live");
	resident(&p, &bytes);
	end_panel(&p, &bytes);
	peak(&p, &bytes);
	fit(m, &blocks, peak_blocks);
	begin_panel(&p, &blocks, "Live blocks", NULL);
	area(&p, &blocks, peak_blocks, "high2");
	line(&p, &blocks, live_blocks, "live2");
	end_panel(&p, &blocks);
	fit(m, &rates, allocation_rate);
	fit(m, &rates, free_rate);
	begin_panel(&p, &rates, "Calls", calls);
	area(&p, &rates, allocation_rate, "alloc");
	area(&p, &rates, free_rate, "free");
	end_panel(&p, &rates);
	marks(&p);
	fprintf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", plot_js);
	return ferror(out) ? -EIO : 0;
}
