/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/filters.h"
#include "cmd/formats.h"
#include "cmd/outputs.h"
#include "cmd/progress.h"
#include "cmd/views.h"
#include "export/html.h"
#include "export/output.h"
#include "export/text/text.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/model.h"
#include "model/sums/quick.h"
#include "model/sums/shape.h"
#include "model/sums/weight.h"

static const char help[] =
    "usage: memprof report FILE [options]\n"
    "Without a format: a summary to read.  Several formats can be written in one reading, each "
    "with\n"
    "its file after it: memprof report FILE --json A --flamegraph B --csv C\n"
    "  --quick              what is live at the end, quickly, from the file's index: the summary,\n"
    "                       --tree, --collapsed, --flamegraph or --icicle\n"
    "  --only SHAPE         only sites whose live bytes over time are growing, plateau, burst or\n"
    "                       sawtooth (doc/views.md)\n"
    "  --not-freed          only blocks that were not freed during the recording (which of them\n"
    "                       nothing points to any more: memprof leaks)\n"
    "  --json [OUT]         everything, as doc/json.md describes it (--not-freed: each live block "
    "too)\n"
    "  --tree [OUT]         call tree as text\n"
    "  --collapsed [OUT]    folded stacks, as flamegraph.pl reads them\n"
    "  --flamegraph SVG     flame graph for a browser: click to zoom, search\n"
    "  --icicle SVG         the same, the outermost frame on top\n"
    "  --heaptrack [OUT]    for heaptrack_print and heaptrack_gui\n"
    "  --pprof [OUT]        for pprof: gzip'd protobuf\n"
    "  --speedscope [OUT]   for speedscope.app: JSON with a profile of each cost\n"
    "  --csv [OUT]          one line for each stack, for spreadsheets\n"
    "  --ascii-tree [OUT]   call tree with sizes, counts and times, every frame\n"
    "  --html HTML          a page for a browser, in one file, to look around in all of it\n"
    "  --plot SVG           live bytes, resident memory, blocks and rates over time\n"
    "  --view LIST          allocations, groups (by stack), libraries, threads, sizes, timeline "
    "or\n"
    "                       maps, as text or with --json; for page faults: faults or maps\n"
    "  --sort-by KEY, --order asc|dsc, --skip N, --count N\n"
    "                       for --view allocations, groups and faults (doc/views.md); all: --count "
    "all\n"
    "  --peek FUNCTION      what functions cost, by caller and by callee; FUNCTION: a regular\n"
    "                       expression\n"
    "  --annotate FILE      a source file with what its lines allocate\n"
    "  --source-prefix OLD=NEW|DIR\n"
    "                       where sources are here: replaces the start of a path, or names a "
    "folder\n"
    "  --replay [OUT]       for memprof-replay: the same allocations under any allocator\n"
    "  --cost WHAT          live (default for --not-freed), allocated (default), count, peak, "
    "temporary,\n"
    "                       mapped (the program's own mappings); for page faults: faulted\n"
    "                       (bytes, default), faults, major\n"
    "  --top N              sites in each list of the summary (default 3, with --verbose 5)\n"
    "  --verbose            the summary with all its sums and lists, not only a screen\n"
    "  --group-by WHAT      what a site of these lists is: a line of the user's code (default),\n"
    "                       function, library, class or stack\n"
    "  --bottom-up          --tree from the allocator outwards: its callers\n"
    "  --full-stacks        every frame with its full name; without: runs of frames of libc, the\n"
    "                       C++ library and the like are one, template arguments are \"...\"\n"
    "  --frames N           most lines of each stack in lists (default 3, with --verbose 6)\n"
    "  --lines              source lines in --collapsed and in the stacks of --csv\n"
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
	struct shown shown;
	bool quick, grouped;
	enum growth only; /* --only; GROWTH_UNKNOWN: all */
	struct outputs outputs;
	const char *recording, *output; /* output: of -o */
};

/* Adds to @f that only stacks of this shape are in the report.  Return: 0, or -ENOMEM with @err. */
static int select_growth(const struct model *m, enum growth only, struct filter *f,
			 struct mp_err *err)
{
	char id[16];
	bool any = false;
	int ret = 0;

	if (m->info.what == MP_PAGE_FAULTS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--only: a recording of page faults contains no blocks");
	for (uint32_t i = 0; i < m->stacks.n && !ret; i++) {
		if (growth_of(m, i) != only)
			continue;
		any = true;
		snprintf(id, sizeof(id), "%u", i);
		ret = filter_set(f, "backtraces", id, err);
	}
	if (any || ret)
		return ret;
	fprintf(stderr,
		"memprof: no site of %s is %s (--only); doc/views.md says when that is not "
		"decided\n",
		printable(m->source.path), growth_name(only));
	snprintf(id, sizeof(id), "%u", UINT32_MAX);
	return filter_set(f, "backtraces", id, err);
}

static bool wants_blocks(const struct arguments *a)
{
	struct format_request r = a->request;
	bool wants = false;

	for (uint32_t i = 0; i < a->outputs.n; i++) {
		r.format = a->outputs.at[i].format;
		wants |= format_wants_blocks(&r);
	}
	return wants;
}

/* Reads the recording.  Return: 0, or a negative errno with @err. */
static int load_model(const char *path, struct arguments *a, struct model *m, struct mp_err *err)
{
	struct progress bar;
	struct model_options o = {.filter = &a->filter, .progress = {progress_tell, &bar}};
	int ret;

	o.blocks = wants_blocks(a);
	progress_begin(&bar, "reading");
	ret = a->quick ? quick_load(path, m, err) : -ENOENT;
	if (ret == -ENOENT) {
		if (a->quick)
			fprintf(stderr, "memprof: %s has no index, so the whole file is read\n",
				printable(path));
		ret = model_load(path, &o, m, err);
	}
	/* A recording of the live heap has no other cost, for which more can have to be read. */
	if (!ret && m->info.live_only && a->request.cost < 0) {
		a->request.cost = COST_LEAKED;
		if (!a->quick && wants_blocks(a) && !o.blocks) {
			o.blocks = true;
			model_free(m);
			ret = model_load(path, &o, m, err);
		}
	}
	if (!ret && a->only) {
		ret = select_growth(m, a->only, &a->filter, err);
		model_free(m);
		ret = ret ? ret : model_load(path, &o, m, err);
	}
	progress_end(&bar);
	if (!ret)
		m->shown = a->shown;
	return ret;
}

/* Can the recording be shown as requested?  Return: 0, or a negative errno with @err. */
static int suits(const struct arguments *a, const struct model *m, struct mp_err *err)
{
	struct format_request r = a->request;
	int ret = 0;

	if (a->view.name)
		return view_suits(&a->view, &m->info, err);
	for (uint32_t i = 0; i < a->outputs.n && !ret; i++) {
		r.format = a->outputs.at[i].format;
		ret = format_suits(&r, &m->info, err);
	}
	return ret;
}

/* Tells that an output has less of the culled blocks than of the others. */
static void tell_culled(const struct arguments *a, const struct model *m)
{
	bool list = a->view.name == VIEW_ALLOCATIONS, needs = list;

	for (uint32_t i = 0; i < a->outputs.n && !a->view.name; i++)
		needs |= format_facts(a->outputs.at[i].format)->history;
	if (m->sums.culled_blocks && needs)
		fprintf(stderr,
			"memprof: %s has only sums of %s, which lived shorter than the others: %s; "
			"attach --history records every event\n",
			printable(a->recording), counted(m->sums.culled_blocks, "block"),
			list ? "the list is without them" : "each is freed at once in the output");
}

static void tell_doubts(const struct arguments *a, const struct model *m)
{
	bool estimated = true, truncated = !a->view.name;

	tell_culled(a, m);
	for (uint32_t i = 0; i < a->outputs.n; i++) {
		estimated &= format_facts(a->outputs.at[i].format)->says_estimated;
		truncated &= format_facts(a->outputs.at[i].format)->says_truncated;
	}
	if (m->source.truncated && !truncated)
		fprintf(stderr, "memprof: %s: %s\n", printable(a->recording), m->source.truncated);
	if (!estimated || a->view.name)
		text_suppressed(m, "memprof: suppressed: ", stderr);
	if (model_is_estimated(m) && !estimated)
		fprintf(stderr,
			"memprof: %s %s: bytes and blocks are estimates (--json has their standard "
			"errors)\n",
			printable(a->recording),
			m->info.sample_interval || m->info.overhead_ppm ? "is a sample"
									: "was thinned");
}

static int write_one(struct model *m, const struct arguments *a, uint32_t i, struct mp_err *err)
{
	struct format_request r = a->request;
	FILE *out;
	int ret;

	r.format = a->outputs.at[i].format;
	out = output_open(a->outputs.at[i].file, format_facts(r.format)->gzip, err);
	if (!out)
		return -EIO;
	ret = a->view.name ? view_write(m, &a->view, out, err) : format_write(m, &r, out, err);
	if (ret) {
		(void)output_close(out);
		return ret;
	}
	ret = output_close(out);
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s",
			     strerror(-ret))
		   : 0;
}

static int write_report(struct arguments *a)
{
	struct mp_err err = {0};
	struct model m;
	int ret = load_model(a->recording, a, &m, &err);

	if (ret)
		return complain(&err);
	ret = suits(a, &m, &err);
	if (!ret) {
		tell_doubts(a, &m);
		if (!a->only)
			filter_tell_empty(&a->filter, &m);
	}
	for (uint32_t i = 0; i < a->outputs.n && !ret; i++)
		ret = write_one(&m, a, i, &err);
	model_free(&m);
	return ret ? complain(&err) : MP_EXIT_OK;
}

static int take_format(struct arguments *a, enum format format, const char *value)
{
	if (format == FORMAT_PEEK)
		a->request.peek = value;
	else if (format == FORMAT_ANNOTATE)
		a->request.annotate = value;
	return outputs_add(&a->outputs, format, value);
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
	case 'O':
		a->only = growth_named(optarg);
		return a->only
			   ? 0
			   : usage_error("%s: --only: '%.100s' is none of growing, plateau, burst, "
					 "sawtooth",
					 command, optarg);
	case 'v':
		a->request.verbose = true;
		return 0;
	case 'C':
		if (cost_parse(optarg, &cost)) {
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
	case 'G':
		a->grouped = true;
		if (group_by_parse(optarg, &a->request.by))
			return 0;
		return usage_error("%s: --group-by: '%s' is none of line, function, library, "
				   "class, stack",
				   command, optarg);
	case 'S':
		if (!*optarg || a->request.prefixes.n == SOURCE_PREFIXES)
			return usage_error("%s: --source-prefix: OLD=NEW or DIR, at most %d times",
					   command, SOURCE_PREFIXES);
		a->request.prefixes.at[a->request.prefixes.n++] = optarg;
		return 0;
	case 'b':
		a->request.bottom_up = true;
		return 0;
	default:
		return take_format(a, (enum format)(c - FORMAT_OPTION), optarg);
	}
}

static bool is_quick(enum format f)
{
	return f == FORMAT_TREE || f == FORMAT_COLLAPSED || f == FORMAT_FLAMEGRAPH ||
	       f == FORMAT_ICICLE;
}

static bool settle_quick(struct arguments *a)
{
	bool quick = !a->view.name && !a->only && filter_is_empty(&a->filter);

	if (a->request.cost < 0 && a->outputs.n)
		a->request.cost = COST_LEAKED;
	for (uint32_t i = 0; i < a->outputs.n; i++)
		quick &= a->request.cost == COST_LEAKED && is_quick(a->outputs.at[i].format);
	return quick;
}

/* A word that is no option: the recording, then the files of formats. */
static int take_word(struct arguments *a, const char *word)
{
	if (!a->recording) {
		a->recording = word;
		a->outputs.open = false;
		return 0;
	}
	if (outputs_take_word(&a->outputs, word))
		return 0;
	return usage_error("report: unexpected argument '%s'", word);
}

static int settle_arguments(struct arguments *a)
{
	bool formats = a->outputs.n > 0;
	struct mp_err err = {0};

	if (outputs_have(&a->outputs, FORMAT_HTML) && html_check(&err))
		return complain(&err);
	if (a->request.bottom_up && !outputs_have(&a->outputs, FORMAT_TREE))
		return usage_error("report: --bottom-up needs --tree");
	if (a->grouped && (a->view.name || (formats && !outputs_have(&a->outputs, FORMAT_JSON))))
		return usage_error("report: --group-by is for the lists of the summary and of "
				   "--json");
	if (a->request.prefixes.n && !outputs_have(&a->outputs, FORMAT_ANNOTATE))
		return usage_error("report: --source-prefix needs --annotate");
	if (a->quick && !settle_quick(a))
		return usage_error("report: --quick reports only live blocks by stack: use it for "
				   "the summary, --tree, --collapsed, --flamegraph or --icicle, "
				   "with --cost live and without filters");
	if (a->view.name && formats &&
	    (a->outputs.n > 1 || !outputs_have(&a->outputs, FORMAT_JSON)))
		return usage_error(
		    "report: --view can be combined with no other format than --json");
	if (a->only && a->filter.backtraces.n)
		return usage_error("report: --only and --backtraces cannot be combined");
	if (!a->recording)
		return usage_error("report: which recording?");
	return outputs_settle(&a->outputs, a->output) || view_settle(&a->view, formats)
		   ? MP_EXIT_USAGE
		   : 0;
}

static int take_options(struct arguments *a, int argc, const struct filter_options *o)
{
	int c, status = 0;

	while (!status && (c = getopt_long(argc, o->argv, "-:o:h", o->all, NULL)) != -1) {
		if (c == '?' || c == ':')
			return option_error("report", c, o->argv, o->all);
		if (c == 'h') {
			fputs(help, stdout);
			filter_help();
			return -1;
		}
		if (c == 1) {
			status = take_word(a, optarg);
			continue;
		}
		a->outputs.open = false;
		if (c >= FILTER_OPTION && c < VIEW_OPTION)
			status = filter_option("report", &a->filter, c, optarg) ? 0 : MP_EXIT_USAGE;
		else
			status = c >= SHOW_OPTION   ? show_option(&a->shown, c, optarg, "report")
				 : c >= VIEW_OPTION ? view_option(&a->view, c, optarg)
						    : take_option(a, c, "report");
	}
	for (; !status && optind < argc; optind++)
		status = take_word(a, o->argv[optind]);
	return status ? status : settle_arguments(a);
}

int cmd_report(int argc, char **argv)
{
	static const struct option own[] = {{"not-freed", no_argument, NULL, 'l'},
					    {"leaks", no_argument, NULL, 'l'}, /* its old name */
					    {"quick", no_argument, NULL, 'q'},
					    {"verbose", no_argument, NULL, 'v'},
					    {"only", required_argument, NULL, 'O'},
					    {"bottom-up", no_argument, NULL, 'b'},
					    FORMAT_OPTIONS,
					    VIEW_OPTIONS,
					    SHOW_OPTIONS,
					    {"cost", required_argument, NULL, 'C'},
					    {"top", required_argument, NULL, 'n'},
					    {"source-prefix", required_argument, NULL, 'S'},
					    {"group-by", required_argument, NULL, 'G'},
					    {"least", required_argument, NULL, 'L'},
					    {"output", required_argument, NULL, 'o'},
					    {"help", no_argument, NULL, 'h'},
					    {0}};
	struct arguments a = {.request = {.cost = -1, .top = TOP_USUAL, .least = 1}};
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
		status = write_report(&a);
	filter_options_free(&o);
	filter_free(&a.filter);
	return status < 0 ? MP_EXIT_OK : status;
}
