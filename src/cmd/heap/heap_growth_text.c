/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof heap --growth and memprof heap diff print. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cmd/cmd.h"
#include "cmd/heap/heap_growth.h"
#include "cmd/heap/leaks_cmd.h"
#include "cmd/options/program.h"
#include "export/text/terminal.h"
#include "lib/create.h"
#include "lib/human.h"
#include "lib/printable.h"

#define TABLE_DEPTH 4
#define TABLE_COUNT 10
#define LEAST	    0.005 /* below the roots, lines with a smaller part of the change are combined */
#define WRAP	    7
#define WHAT_COLUMN 58 /* where the description of a line begins */

static const char *signed_bytes(int64_t n, char buf[32])
{
	char bytes[24];

	snprintf(buf, 32, "%s%s",
		 n < 0 ? "-"
		 : n   ? "+"
		       : "",
		 human_bytes(n < 0 ? -(uint64_t)n : (uint64_t)n, bytes));
	return buf;
}

static const char *signed_number(int64_t n, char buf[40])
{
	char number[32];

	snprintf(buf, 40, "%s%s",
		 n < 0 ? "-"
		 : n   ? "+"
		       : "",
		 human_number(n < 0 ? -(uint64_t)n : (uint64_t)n, number));
	return buf;
}

/* A rate in bytes per second, as bytes per hour. */
static const char *per_hour(double rate, char buf[32])
{
	double hour = fabs(rate) * 3600;

	if (hour >= 9e18)
		snprintf(buf, 32, "%.1e B", rate * 3600);
	else
		signed_bytes(rate < 0 ? -(int64_t)hour : (int64_t)hour, buf);
	return buf;
}

/* ------------------------------------------------------------- looks -- */

static void print_moment(uint64_t clock_ns)
{
	time_t seconds = (time_t)(clock_ns / 1000000000u);
	char text[32] = "";
	struct tm tm;

	if (clock_ns && localtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		printf("%s, ", text);
}

void growth_print_look(const struct look *l, size_t number, size_t looks)
{
	printf("look %zu", number);
	if (looks)
		printf(" of %zu", looks);
	printf(": ");
	print_moment(l->clock_ns);
	printf("%s in %s", human(l->live_bytes), counted(l->live_blocks, "live block"));
	if (l->unreached_blocks)
		printf(", %s of them unreachable", human(l->unreached_bytes));
	if (l->pause_ns) {
		printf("; ");
		leaks_print_pause(l->pause_ns, 0);
	}
	if (!l->exact)
		printf("; the list of blocks is approximate");
	putchar('\n');
	fflush(stdout);
}

/* ------------------------------------------------------------- head -- */

static void print_trend(const struct heap_growth *g, const struct trend *t)
{
	char bytes[32], rate[32], error[32];

	printf("%s%s%s", term_on(stdout, TERM_AMOUNT), signed_bytes(t->change, bytes),
	       term_off(stdout));
	if (g->same_process) {
		printf(", %s an hour", per_hour(t->slope, rate));
		/* A standard error has no sign. */
		if (g->n > 2)
			printf(" (standard error %s)", per_hour(t->error, error) + (t->error > 0));
	}
	if (g->n > 2)
		printf(", %s", trend_text(t));
}

static void print_warnings(const struct heap_growth *g)
{
	bool versions = false;

	for (size_t i = 1; i < g->n; i++)
		versions |= strcmp(g->look[0]->version, g->look[i]->version) != 0;
	if (versions)
		printf("the looks are of different versions of memprof, which can name the same "
		       "thing differently\n");
	if (!g->same_process)
		printf("the looks are of different runs of the program, so there are no rates\n");
	if (!g->same_build)
		printf(
		    "%sdifferent builds%s: variables without a symbol are not compared, and what "
		    "else has the same name can be something else\n",
		    term_on(stdout, TERM_WARNING), term_off(stdout));
	else if (!g->same_process && !g->look[0]->build_id)
		printf("the program has no build id: whether the looks are of the same build is "
		       "not known, and variables without a symbol are not compared\n");
}

static void print_head(const struct heap_growth *g)
{
	char number[40];

	print_warnings(g);
	printf("\nlive: ");
	print_trend(g, &g->live_bytes);
	printf("; %s blocks", signed_number(g->live_blocks.change, number));
	if (g->same_process)
		printf("; in %.1f s", g->seconds[g->n - 1]);
	putchar('\n');
	if (g->unreached_bytes.change > 0) {
		printf("of it unreachable: ");
		print_trend(g, &g->unreached_bytes);
		printf("; memprof leaks has the details\n");
	}
	if (g->n == 2 && g->live_bytes.change)
		printf("two looks show one difference; only more of them tell steady growth from "
		       "noise\n");
	else if (g->n > 2 && g->n < 5)
		printf("with %zu looks 1 of %s quantities that only fluctuate rises each time by "
		       "chance; more looks tell better\n",
		       g->n, g->n == 3 ? "6" : "24");
}

/* ------------------------------------------------------------- lines -- */

/* "pointers of 8.0 KiB -> 16.0 KiB", "100 -> 200 x session" */
static void write_blocks(const struct growth_line *l, size_t n, FILE *out)
{
	const struct growth_amount *was = &l->at[0], *is = &l->at[n - 1];
	const char *name = printable(l->like->name);
	char a[32], b[32];

	if (was->count > 1 || is->count > 1) {
		if (was->count != is->count)
			fprintf(out, "%s -> ", human_number(was->count, a));
		fprintf(out, "%s x %s", human_number(is->count, b), name);
		if (l->various)
			fprintf(out, ", of several sizes");
		else if (l->like->size)
			fprintf(out, " of %s", human_bytes(l->like->size, a));
		return;
	}
	fprintf(out, "%s of %s", name, human_bytes(was->own, a));
	if (was->own != is->own)
		fprintf(out, " -> %s", human_bytes(is->own, b));
}

static void write_what(const struct growth_line *l, size_t n, FILE *out)
{
	const struct look_line *like = l->like;

	if (like->kind == RETAINED_BLOCKS)
		write_blocks(l, n, out);
	else if (like->kind == RETAINED_REST)
		fprintf(out, "(%s too small to list)", thousands(like->count));
	else
		fprintf(out, "%s%s", like->kind == RETAINED_SHARED ? "shared by " : "",
			printable(like->name));
	if (like->module)
		fprintf(out, "  [%s]", printable(program_file(like->module)));
	if (like->source)
		fprintf(out, "  %s:%u", printable(like->source), like->line);
	if (like->reached)
		fprintf(out, ", reached from %s", printable(like->reached));
}

static const char *how_text(const struct trend *t, bool unlisted)
{
	if (unlisted && t->how == TREND_NEW)
		return "new, or was small";
	if (unlisted && t->how == TREND_VANISHED)
		return "gone, or small";
	return trend_text(t);
}

static void print_numbers(const struct heap_growth *g, const struct trend *bytes, int64_t blocks,
			  const char *how)
{
	char change[32], rate[32], number[40];

	printf("%s%11s%s %11s %12s  ", term_on(stdout, TERM_AMOUNT),
	       signed_bytes(bytes->change, change), term_off(stdout),
	       g->same_process ? per_hour(bytes->slope, rate) : "", signed_number(blocks, number));
	printf("%-18s", how);
}

static void print_line(const struct heap_growth *g, const struct growth_line *l, uint32_t depth)
{
	const size_t column = WHAT_COLUMN + 2 * (size_t)depth;
	char *what = NULL;
	size_t size;
	FILE *out = open_memstream(&what, &size);

	if (out) {
		write_what(l, g->n, out);
		fclose(out);
	}
	print_numbers(g, &l->bytes, l->blocks.change, how_text(&l->bytes, l->unlisted));
	printf("%*s%s", (int)(2 * depth), "", depth ? "" : term_on(stdout, TERM_BOLD));
	term_line(stdout, column, column + 4, "%s", what ? what : "");
	fputs(depth ? "" : term_off(stdout), stdout);
	free(what);
}

struct limits {
	uint32_t levels, count;
	double least; /* bytes, below the roots */
};

static bool is_shown(const struct growth_line *l, uint32_t depth, const struct limits *most)
{
	return l->bytes.change && (!depth || fabs((double)l->bytes.change) >= most->least);
}

/* Prints what is below @l.  Recursion is as deep as a look. */
static void print_below(const struct heap_growth *g, const struct growth_line *l, uint32_t depth,
			const struct limits *most)
{
	struct trend left = {0};
	int64_t blocks = 0;
	uint32_t n = 0;
	uint64_t lines = 0;

	if (depth > most->levels)
		return;
	for (const struct growth_line *c = l->child; c; c = c->next) {
		if (n < most->count && is_shown(c, depth, most)) {
			n++;
			print_line(g, c, depth);
			print_below(g, c, depth + 1, most);
			continue;
		}
		if (!c->bytes.change && !c->blocks.change)
			continue;
		lines++;
		left.change += c->bytes.change;
		left.slope += c->bytes.slope;
		blocks += c->blocks.change;
	}
	if (!lines)
		return;
	print_numbers(g, &left, blocks, "");
	printf("%*s(%s more)\n", (int)(2 * depth), "", thousands(lines));
}

static void print_lines(const struct heap_growth *g, const struct growth_request *q)
{
	struct limits most = {q->depth ? q->depth : TABLE_DEPTH, q->count ? q->count : TABLE_COUNT,
			      0};

	for (const struct growth_line *c = g->all->child; c; c = c->next)
		most.least += LEAST * fabs((double)c->bytes.change);
	printf("\n%s%11s %11s %12s  %-18s%s%s\n", term_on(stdout, TERM_FAINT), "change", "an hour",
	       "blocks", "how", "kept by", term_off(stdout));
	print_below(g, g->all, 0, &most);
	if (!g->all->bytes.change && !g->all->blocks.change)
		printf("what can be reached is as much as before\n");
}

/* @number, @what: heads of the columns. */
static void print_types(const struct heap_growth *g, const struct growth_request *q,
			const growth_types *types, const char *number, const char *what)
{
	const uint32_t count = q->count ? q->count : TABLE_COUNT;
	uint32_t n = 0;

	printf("\n%s%11s %11s %12s  %-18s%s%s\n", term_on(stdout, TERM_FAINT), "change", "an hour",
	       number, "how", what, term_off(stdout));
	vec_for_each (types, t) {
		const struct trend *how = types == &g->containers ? &t->blocks : &t->bytes;

		if (!t->bytes.change && !t->blocks.change)
			continue;
		if (n++ >= count)
			break;
		print_numbers(g, &t->bytes, t->blocks.change, how_text(how, t->unlisted));
		if (t->like->name[0])
			printf("%s", printable(t->like->name));
		else if (t->various)
			printf("large blocks, few of each size");
		else
			printf("%s blocks without a class", human(t->like->size));
		if (t->like->module)
			printf("  [%s]", printable(program_file(t->like->module)));
		putchar('\n');
	}
	if (!n)
		printf("no %s has more or less than before\n", what);
}

/* ------------------------------------------------------------- budget -- */

static const char *budget_text(const struct growth_budget *b, char buf[48])
{
	char bytes[24];

	human_bytes(b->bytes, bytes);
	if (b->seconds <= 0)
		snprintf(buf, 48, "%s in all", bytes);
	else if (fabs(b->seconds - 3600) < 1)
		snprintf(buf, 48, "%s an hour", bytes);
	else
		snprintf(buf, 48, "%s in %.0f s", bytes, b->seconds);
	return buf;
}

/* Return: whether it is exceeded, or cannot be judged. */
static int judge(const struct heap_growth *g, const struct growth_budget *b)
{
	char text[48];

	budget_text(b, text);
	switch (growth_judge(g, b)) {
	case GROWTH_ABOVE:
		printf("\n%sabove the budget%s of %s\n", term_on(stdout, TERM_BAD),
		       term_off(stdout), text);
		return LEAKS_FOUND;
	case GROWTH_NO_RATE:
		printf("\nthe slope is above the budget of %s, but not certain: more looks, or a "
		       "longer time, would tell\n",
		       text);
		return LEAKS_NONE;
	case GROWTH_NO_TIME:
		fprintf(stderr,
			"memprof: --budget %s needs looks at one run of the program; a budget "
			"without a time, such as 10MB, is for any two\n",
			text);
		return LEAKS_USAGE;
	default:
		printf("\n%swithin the budget%s of %s\n", term_on(stdout, TERM_GOOD),
		       term_off(stdout), text);
		return LEAKS_NONE;
	}
}

static int write_json(const struct heap_growth *g, const struct growth_request *q)
{
	FILE *f;
	int ret = create_stream(q->json, &f);

	if (!ret) {
		ret = growth_json(g, q, f);
		if (fclose(f) && !ret)
			ret = -errno;
	}
	if (ret)
		fprintf(stderr, "memprof: cannot write %s: %s\n", q->json, create_error(ret));
	return ret ? LEAKS_NOT_INSPECTABLE : 0;
}

int growth_report(const struct heap_growth *g, const struct growth_request *q, const char *cut)
{
	int status = 0;

	if (cut)
		term_line(stdout, 0, WRAP, "%s: this compares the %zu looks before", cut, g->n);
	print_head(g);
	print_lines(g, q);
	print_types(g, q, &g->types, "blocks", "type");
	if (g->containers.n)
		print_types(g, q, &g->containers, "elements", "container");
	if (q->has_budget)
		status = judge(g, &q->budget);
	fflush(stdout);
	if (q->json && write_json(g, q))
		return LEAKS_NOT_INSPECTABLE;
	return status;
}
