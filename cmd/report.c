/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/formats.h"
#include "report/output.h"

static const char help[] =
    "usage: memprof report FILE [options]\n"
    "Without a format: a summary to read.\n"
    "  --leaks              only what was not freed during the recording\n"
    "  --json               everything, as doc/json.md describes it (--leaks: each live block "
    "too)\n"
    "  --tree               call tree as text\n"
    "  --collapsed          folded stacks, as flamegraph.pl reads them\n"
    "  --flamegraph SVG     flame graph for a browser: click to zoom, search\n"
    "  --icicle SVG         the same, the outermost frame on top\n"
    "  --heaptrack          for heaptrack_print and heaptrack_gui\n"
    "  --pprof              for pprof: gzip'd protobuf\n"
    "  --speedscope         for speedscope.app: JSON with a profile of each cost\n"
    "  --csv                one line for each stack, for spreadsheets\n"
    "  --ascii-tree         call tree with sizes, counts and times, every frame\n"
    "  --cost WHAT          live (default for --leaks), allocated (default), count, peak, "
    "temporary\n"
    "  --top N              sites in each list of the summary (default 5)\n"
    "  --least PERCENT      smallest branch of --tree (default 1)\n"
    "  -o, --output FILE    write there instead of standard output; names in .gz and .zst are "
    "compressed\n";

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

static int write_report(const char *path, const struct format_request *r, const char *output)
{
	struct mp_err err = {0};
	struct model m;
	FILE *out;
	int ret;

	if (model_load(path, &m, &err))
		return complain(&err);
	if (m.truncated)
		fprintf(stderr, "memprof: %s: %s\n", path, m.truncated);
	out = output_open(output, format_is_gzip(r->format), &err);
	if (!out) {
		model_free(&m);
		return complain(&err);
	}
	ret = format_write(&m, r, out, &err);
	model_free(&m);
	if (ret) {
		(void)output_close(out);
		return complain(&err);
	}
	ret = output_close(out);
	if (ret) {
		mp_fail(&err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s", strerror(-ret));
		return complain(&err);
	}
	return MP_EXIT_OK;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {
	    {"leaks", no_argument, NULL, 'l'},	     FORMAT_OPTIONS,
	    {"cost", required_argument, NULL, 'C'},  {"top", required_argument, NULL, 'n'},
	    {"least", required_argument, NULL, 'L'}, {"output", required_argument, NULL, 'o'},
	    {"help", no_argument, NULL, 'h'},	     {0}};
	struct format_request r = {.cost = -1, .top = 5, .least = 1};
	const char *output = NULL, *svg = NULL;
	double v;
	int c, formats = 0;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			r.leaks = true;
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
			output = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			if (c >= FORMAT_OPTION) {
				r.format = (enum format)(c - FORMAT_OPTION);
				svg = optarg;
				formats++;
				break;
			}
			return usage_error("report: unknown option or missing value");
		}
	}
	if (formats > 1)
		return usage_error("report: one format at a time");
	if (svg && output)
		return usage_error("report: this format names its file itself; -o does not go "
				   "with it");
	if (svg)
		output = svg;
	if (optind == argc)
		return usage_error("report: which recording?");
	if (optind + 1 < argc)
		return usage_error("report: unexpected argument '%s'", argv[optind + 1]);
	return write_report(argv[optind], &r, output);
}
