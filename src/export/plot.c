/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "export/svg.h"
#include "export/text.h"
#include "lib/human.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/weight.h"

#define WIDTH	    1100
#define LEFT	    90
#define RIGHT	    30
#define HEAD	    76
#define GAP	    46
#define TICKS	    5
#define MAX_COMMAND 110 /* characters of the command line that fit */
#define HEIGHT	    (HEAD + 250 + GAP + 120 + GAP + 120 + GAP)

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

static double x_of(const struct plot *p, uint64_t ns)
{
	return LEFT + (double)ns / 1e9 / p->seconds * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct panel *a, double v)
{
	return a->top + a->height - v / a->most * a->height;
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

static void axes(const struct plot *p, struct panel *a, const char *title)
{
	double step, t_step = step_for(p->seconds);
	char text[48];

	a->most = a->most > 0 ? a->most * 1.05 : 1;
	step = a->bytes ? byte_step(a->most) : fmax(1, step_for(a->most));
	fprintf(p->out, "<text x=\"%d\" y=\"%d\" class=\"t\">%s</text>\n", LEFT, a->top - 8, title);
	for (int i = 0; i * step <= a->most; i++) {
		double v = i * step;

		value_text(a, v, text, sizeof(text));
		fprintf(p->out,
			"<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
			"class=\"r\">%s</text>\n",
			LEFT, y_of(a, v), WIDTH - RIGHT, LEFT - 8, y_of(a, v) + 4, text);
	}
	for (int i = 0; i * t_step <= p->seconds; i++)
		fprintf(p->out,
			"<path class=\"g\" d=\"M%.1f %dv%d\"/><text x=\"%.1f\" y=\"%d\" "
			"class=\"m\">%.4g s</text>\n",
			x_of(p, (uint64_t)(i * t_step * 1e9)), a->top, a->height,
			x_of(p, (uint64_t)(i * t_step * 1e9)), a->top + a->height + 15, i * t_step);
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

	fprintf(p->out, "<path class=\"%s\" d=\"M%d %d", class, LEFT, a->top + a->height);
	vec_for_each (&p->m->sums.timeline, pt) {
		fprintf(p->out, "L%.1f %.1fH%.1f", x_of(p, before),
			y_of(a, value(pt, length_of(p->m, pt))), x_of(p, pt->time_ns));
		before = pt->time_ns;
	}
	fprintf(p->out, "V%dZ\"/>\n", a->top + a->height);
}

/* Draws a line through the values at the end of each point. */
static void line(const struct plot *p, const struct panel *a, value_fn value, const char *class)
{
	fprintf(p->out, "<path class=\"%s\" d=\"M%d %d", class, LEFT, a->top + a->height);
	vec_for_each (&p->m->sums.timeline, pt)
		fprintf(p->out, "L%.1f %.1f", x_of(p, pt->time_ns),
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
		fprintf(p->out, "%c%.1f %.1f", op, x_of(p, s->time_ns), y_of(a, (double)s->rss));
		op = 'L';
	}
	fputs("\"/>\n", p->out);
}

/* @place: counted from the right. */
static void legend(const struct plot *p, const struct panel *a, int place, const char *class,
		   const char *text)
{
	int x = WIDTH - RIGHT - 170 * (place + 1);

	fprintf(p->out,
		"<path class=\"%s\" d=\"M%d %dh20v8h-20z\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
		class, x, a->top - 17, x + 26, a->top - 8, text);
}

static void marks(const struct plot *p)
{
	vec_for_each (&p->m->facts.marks, mark) {
		double x = x_of(p, mark->time_ns);

		fprintf(p->out,
			"<path class=\"mark\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
			"class=\"m\">",
			x, HEAD, HEIGHT - GAP, x, HEIGHT - 12);
		svg_text(mark->name, p->out);
		fputs("</text>\n", p->out);
	}
}

static void peak(const struct plot *p, const struct panel *a)
{
	const struct model *m = p->m;
	double x = x_of(p, m->sums.peak_time_ns), y = y_of(a, (double)m->sums.peak_bytes);
	bool right = x > WIDTH / 2.0;
	char sum[TEXT_COST];

	if (!m->sums.peak_bytes)
		return;
	fprintf(p->out,
		"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"peak\"/><text x=\"%.1f\" "
		"y=\"%.1f\" class=\"%s halo\">peak %s at %.3f s</text>\n",
		x, y, right ? x - 4 : x + 4, fmax(y - 8, a->top + 12), right ? "r" : "l",
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
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\">\n<style>\n"
		"text{font:12px sans-serif;fill:#333}.t{font-weight:bold}.r{text-anchor:end}"
		".m{text-anchor:middle}.h{font-size:15px}\n"
		"path{fill:none}.g{stroke:#ddd}.high{fill:#f6c9a0}.live{stroke:#c1440e;"
		"stroke-width:1.5}.rss{stroke:#2b6cb0;stroke-width:1.5}\n"
		".high2{fill:#bfe3c0}.live2{stroke:#22763a;stroke-width:1.5}.alloc{fill:#c1440e;"
		"fill-opacity:.55}.free{fill:#2b6cb0;fill-opacity:.45}\n"
		".mark{stroke:#555;stroke-dasharray:4 3}.peak{fill:#c1440e}\n"
		".halo{stroke:#fff;stroke-width:3;paint-order:stroke}\n</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"%d\" y=\"22\" class=\"h\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	svg_text(title, p->out);
	fprintf(p->out, "</text>\n<text x=\"%d\" y=\"38\">pid %u, %.1f s, %s%s</text>\n", LEFT,
		m->info.pid, (double)m->facts.end_ns / 1e9,
		text_cost(COST_ALLOCATED, m->sums.total.allocated_bytes, m->sums.total.allocations,
			  sum),
		model_is_estimated(m) ? " (estimated)" : "");
}

int plot_write(const struct model *m, FILE *out)
{
	struct plot p = {m, out, m->facts.end_ns ? (double)m->facts.end_ns / 1e9 : 1e-9};
	struct panel bytes = {HEAD, 250, 0, true, ""};
	struct panel blocks = {HEAD + 250 + GAP, 120, 0, false, ""};
	struct panel rates = {HEAD + 250 + GAP + 120 + GAP, 120, 0, false, "/s"};

	head(&p);
	fit(m, &bytes, peak_bytes);
	vec_for_each (&m->facts.samples, s)
		bytes.most = fmax(bytes.most, (double)s->rss);
	axes(&p, &bytes, "Memory");
	area(&p, &bytes, peak_bytes, "high");
	line(&p, &bytes, live_bytes, "live");
	resident(&p, &bytes);
	peak(&p, &bytes);
	legend(&p, &bytes, 2, "high", "highest live bytes");
	legend(&p, &bytes, 1, "live", "live bytes");
	if (m->facts.samples.n)
		legend(&p, &bytes, 0, "rss", "resident");
	fit(m, &blocks, peak_blocks);
	axes(&p, &blocks, "Live blocks");
	area(&p, &blocks, peak_blocks, "high2");
	line(&p, &blocks, live_blocks, "live2");
	fit(m, &rates, allocation_rate);
	fit(m, &rates, free_rate);
	axes(&p, &rates, "Calls");
	area(&p, &rates, allocation_rate, "alloc");
	area(&p, &rates, free_rate, "free");
	legend(&p, &rates, 1, "alloc", "allocations per second");
	legend(&p, &rates, 0, "free", "frees per second");
	marks(&p);
	fputs("</svg>\n", out);
	return ferror(out) ? -EIO : 0;
}
