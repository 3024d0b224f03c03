/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/filters.h"
#include "cmd/formats.h"
#include "cmd/parse.h"
#include "cmd/progress.h"
#include "cmd/views.h"
#include "export/output.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/quick.h"

static const char help[] =
    "usage: memprof report FILE [options]\n"
    "Without a format: a summary to read.\n"
    "  --quick              what is live at the end, quickly, from the file's index: the summary,\n"
    "                       --tree, --collapsed, --flamegraph or --icicle\n"
    "  --leaks              only blocks that were not freed during the recording\n"
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
    "  --plot SVG           live bytes, resident memory, blocks and rates over time\n"
    "  --view LIST          allocations, groups (by stack), libraries, threads, sizes, timeline "
    "or\n"
    "                       maps, as text or with --json; for page faults: faults or maps\n"
    "  --sort-by KEY, --order asc|dsc, --skip N, --count N\n"
    "                       for --view allocations, groups and faults (doc/views.md)\n"
    "  --replay             for memprof-replay: the same allocations under any allocator\n"
    "  --cost WHAT          live (default for --leaks), allocated (default), count, peak, "
    "temporary,\n"
    "                       mapped (the program's own mappings); for page faults: faulted\n"
    "                       (bytes, default), faults, major\n"
    "  --top N              sites in each list of the summary (default 5)\n"
    "  --bottom-up          --tree from the allocator outwards: its callers\n"
    "  --least PERCENT      smallest branch of --tree (default 1)\n"
    "  -o, --output FILE    write there instead of standard output; names in .gz and .zst are "
    "compressed\n"
    "Filters: only allocations that meet all of them are in the report; see doc/filters.md.\n";

static bool parse_number(const char *text, double most, double *v)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*v = strtod(text, &end);
	return !*end && *v <= most;
}

/* The parsed command line. */
struct arguments {
	struct format_request request;
	struct view_request view;
	struct filter filter;
	bool quick;
	const char *output, *file; /* file: the argument of a format's own option */
	int formats;
};

static int write_report(const char *path, const struct arguments *a)
{
	const struct format_request *r = &a->request;
	const char *output = a->file ? a->file : a->output;
	struct progress bar;
	struct model_options o = {.filter = &a->filter,
				  .blocks = format_wants_blocks(r),
				  .progress = {progress_tell, &bar}};
	struct mp_err err = {0};
	struct model m;
	FILE *out;
	int ret;

	progress_begin(&bar, "reading");
	ret = a->quick ? quick_load(path, &m, &err) : -ENOENT;
	if (ret == -ENOENT) {
		if (a->quick)
			fprintf(stderr, "memprof: %s has no index, so the whole file is read\n",
				printable(path));
		ret = model_load(path, &o, &m, &err);
	}
	progress_end(&bar);
	if (ret)
		return complain(&err);
	ret = a->view.name ? view_suits(&a->view, &m.info, &err) : format_suits(r, &m.info, &err);
	if (ret) {
		model_free(&m);
		return complain(&err);
	}
	if (m.source.truncated)
		fprintf(stderr, "memprof: %s: %s\n", printable(path), m.source.truncated);
	if (m.info.sample_interval && !format_says_estimated(r))
		fprintf(stderr,
			"memprof: %s is a sample: bytes and blocks are estimates (--json has their "
			"standard errors)\n",
			printable(path));
	out = output_open(output, format_is_gzip(r->format), &err);
	if (!out) {
		model_free(&m);
		return complain(&err);
	}
	ret = a->view.name ? view_write(&m, &a->view, out, &err) : format_write(&m, r, out, &err);
	progress_end(&bar);
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

/* Return: 0, or the exit status if the value is wrong. */
static int take_option(struct arguments *a, int c, const char *command)
{
	enum cost cost;
	double v;

	switch (c) {
	case 'l':
		a->request.leaks = true;
		return 0;
	case 'q':
		a->quick = true;
		return 0;
	case 'C':
		if (parse_cost(optarg, &cost)) {
			a->request.cost = (int)cost;
			return 0;
		}
		return usage_error("%s: --cost: '%s' is none of live, allocated, count, peak, "
				   "temporary, mapped, faulted, faults, major",
				   command, optarg);
	case 'n':
		if (!parse_number(optarg, 1e6, &v))
			return usage_error("%s: --top: '%s' is not a number", command, optarg);
		a->request.top = (uint32_t)v;
		return 0;
	case 'L':
		if (parse_number(optarg, 100, &a->request.least))
			return 0;
		return usage_error("%s: --least: '%s' is not a percentage", command, optarg);
	case 'o':
		a->output = optarg;
		return 0;
	case 'b':
		a->request.bottom_up = true;
		return 0;
	default:
		a->request.format = (enum format)(c - FORMAT_OPTION);
		a->file = optarg;
		a->formats++;
		return 0;
	}
}

static bool settle_quick(struct arguments *a)
{
	enum format f = a->request.format;

	if (a->request.cost < 0 && a->formats)
		a->request.cost = COST_LEAKED;
	return !a->view.name && filter_is_empty(&a->filter) &&
	       (!a->formats ||
		(a->request.cost == COST_LEAKED && (f == FORMAT_TREE || f == FORMAT_COLLAPSED ||
						    f == FORMAT_FLAMEGRAPH || f == FORMAT_ICICLE)));
}

static int take_options(struct arguments *a, int argc, const struct filter_options *o)
{
	int c, status;

	while ((c = getopt_long(argc, o->argv, ":o:h", o->all, NULL)) != -1) {
		if (c == '?' || c == ':')
			return option_error("report", c, o->argv);
		if (c == 'h') {
			fputs(help, stdout);
			filter_help();
			return -1;
		}
		if (c >= FILTER_OPTION && c < VIEW_OPTION) {
			if (!filter_option(&a->filter, c, optarg))
				return MP_EXIT_USAGE;
			continue;
		}
		status = c >= VIEW_OPTION ? view_option(&a->view, c, optarg)
					  : take_option(a, c, "report");
		if (status)
			return status;
	}
	if (a->formats > 1)
		return usage_error("report: one format at a time");
	if (a->request.bottom_up && a->request.format != FORMAT_TREE)
		return usage_error("report: --bottom-up needs --tree");
	if (a->quick && !settle_quick(a))
		return usage_error("report: --quick reports only live blocks by stack: use it for "
				   "the summary, --tree, --collapsed, --flamegraph or --icicle, "
				   "with --cost live and without filters");
	if (a->view.name && a->formats && a->request.format != FORMAT_JSON)
		return usage_error(
		    "report: --view can be combined with no other format than --json");
	if (a->file && a->output)
		return usage_error(
		    "report: -o cannot be used with this format, whose option names the file");
	if (optind == argc)
		return usage_error("report: which recording?");
	if (optind + 1 < argc)
		return usage_error("report: unexpected argument '%s'", o->argv[optind + 1]);
	return view_settle(&a->view, a->formats);
}

int cmd_report(int argc, char **argv)
{
	static const struct option own[] = {{"leaks", no_argument, NULL, 'l'},
					    {"quick", no_argument, NULL, 'q'},
					    {"bottom-up", no_argument, NULL, 'b'},
					    FORMAT_OPTIONS,
					    VIEW_OPTIONS,
					    {"cost", required_argument, NULL, 'C'},
					    {"top", required_argument, NULL, 'n'},
					    {"least", required_argument, NULL, 'L'},
					    {"output", required_argument, NULL, 'o'},
					    {"help", no_argument, NULL, 'h'},
					    {0}};
	struct arguments a = {.request = {.cost = -1, .top = 5, .least = 1}};
	struct filter_options o = {0};
	int status;

	filter_init(&a.filter);
	if (filter_options_new(&o, own, argc, argv)) {
		fprintf(stderr, "memprof: out of memory\n");
		status = MP_EXIT_FAILURE;
	} else {
		status = take_options(&a, argc, &o);
	}
	if (!status)
		status = write_report(o.argv[optind], &a);
	filter_options_free(&o);
	filter_free(&a.filter);
	return status < 0 ? MP_EXIT_OK : status;
}
