/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "report/flame.h"
#include "report/json.h"
#include "report/text.h"
#include "report/tree.h"

static const char help[] =
    "usage: memprof report FILE [options]\n"
    "Without a format: a summary to read.\n"
    "  --leaks              only what was not freed during the recording\n"
    "  --json               everything, as doc/json.md describes it (--leaks: each live block "
    "too)\n"
    "  --tree               call tree as text\n"
    "  --collapsed          folded stacks, as flamegraph.pl reads them\n"
    "  --flamegraph SVG     flame graph for a browser: click to zoom, search\n"
    "  --cost WHAT          live (default for --leaks), allocated (default), count, peak, "
    "temporary\n"
    "  --top N              sites in each list of the summary (default 5)\n"
    "  --least PERCENT      smallest branch of --tree (default 1)\n"
    "  -o, --output FILE    write there instead of standard output\n";

enum format { TEXT, JSON, TREE, COLLAPSED, FLAMEGRAPH };

struct request {
	enum format format;
	const char *output;
	bool leaks;
	int cost; /* -1: not said */
	uint32_t top;
	double least;
};

static bool parse_cost(const char *text, int *cost)
{
	static const char *const name[] = {"live", "allocated", "count", "peak", "temporary"};

	for (int i = 0; i < 5; i++) {
		if (!strcmp(text, name[i])) {
			*cost = i; /* enum cost */
			return true;
		}
	}
	return false;
}

static bool parse_number(const char *text, double most, double *v)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*v = strtod(text, &end);
	return !*end && *v <= most;
}

static int write_format(struct model *m, const struct request *r, FILE *out)
{
	enum cost cost = r->cost >= 0 ? (enum cost)r->cost
			 : r->leaks   ? COST_LEAKED
				      : COST_ALLOCATED;
	struct text_options text = {r->top, r->leaks,
				    out == stdout && isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
	struct node *tree = NULL;
	int ret = 0;

	if (r->format == TREE || r->format == FLAMEGRAPH) {
		tree = tree_build(m, cost);
		if (!tree)
			return -ENOMEM;
	}
	switch (r->format) {
	case TEXT:
		text_write(m, &text, out);
		break;
	case JSON:
		ret = json_write(m, r->leaks, out);
		break;
	case TREE:
		tree_write(tree, cost, r->least / 100, out);
		break;
	case COLLAPSED:
		ret = folded_write(m, cost, out);
		break;
	case FLAMEGRAPH:
		ret = flame_write(m, tree, cost, out);
		break;
	}
	tree_free(tree);
	return ret;
}

static int write_report(const char *path, const struct request *r)
{
	struct mp_err err = {0};
	struct model m;
	FILE *out = stdout;
	int ret;

	if (model_load(path, &m, &err))
		return complain(&err);
	if (m.truncated)
		fprintf(stderr, "memprof: %s: %s\n", path, m.truncated);
	if (r->output && strcmp(r->output, "-")) {
		out = fopen(r->output, "we");
		if (!out) {
			mp_fail(&err, MP_EXIT_OUTPUT, -errno, "cannot write %s: %s", r->output,
				strerror(errno));
			model_free(&m);
			return complain(&err);
		}
	}
	ret = write_format(&m, r, out);
	if (fflush(out) || ferror(out))
		ret = -EIO;
	if (out != stdout)
		ret = fclose(out) ? -EIO : ret;
	model_free(&m);
	if (ret) {
		mp_fail(&err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
		return complain(&err);
	}
	return MP_EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {{"leaks", no_argument, NULL, 'l'},
						{"json", no_argument, NULL, 'j'},
						{"tree", no_argument, NULL, 't'},
						{"collapsed", no_argument, NULL, 'c'},
						{"flamegraph", required_argument, NULL, 'f'},
						{"cost", required_argument, NULL, 'C'},
						{"top", required_argument, NULL, 'n'},
						{"least", required_argument, NULL, 'L'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct request r = {.cost = -1, .top = 5, .least = 1};
	const char *svg = NULL;
	double v;
	int c, formats = 0;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			r.leaks = true;
			break;
		case 'j':
			r.format = JSON;
			formats++;
			break;
		case 't':
			r.format = TREE;
			formats++;
			break;
		case 'c':
			r.format = COLLAPSED;
			formats++;
			break;
		case 'f':
			r.format = FLAMEGRAPH;
			svg = optarg;
			formats++;
			break;
		case 'C':
			if (!parse_cost(optarg, &r.cost))
				return usage_error("report: --cost: '%s' is none of live, "
						   "allocated, count, peak, temporary",
						   optarg);
			break;
		case 'n':
			if (!parse_number(optarg, 1e6, &v))
				return usage_error("report: --top: '%s' is not a number", optarg);
			r.top = (uint32_t)v;
			break;
		case 'L':
			if (!parse_number(optarg, 100, &r.least))
				return usage_error("report: --least: '%s' is not a percentage",
						   optarg);
			break;
		case 'o':
			r.output = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			return usage_error("report: unknown option or missing value");
		}
	}
	if (formats > 1)
		return usage_error(
		    "report: choose one of --json, --tree, --collapsed, --flamegraph");
	if (svg && r.output)
		return usage_error(
		    "report: --flamegraph names its file itself; -o does not go with it");
	if (svg)
		r.output = svg;
	if (optind == argc)
		return usage_error("report: which recording?");
	if (optind + 1 < argc)
		return usage_error("report: unexpected argument '%s'", argv[optind + 1]);
	return write_report(argv[optind], &r);
}
