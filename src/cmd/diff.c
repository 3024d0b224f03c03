/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/filters.h"
#include "cmd/progress.h"
#include "export/diff.h"
#include "export/diff_growth.h"
#include "export/output.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "model/filter/amount.h"
#include "model/model.h"

static const char help[] =
    "usage: memprof diff BEFORE AFTER [options]\n"
    "       memprof diff RECORDING --at 10s --at 60s [options]\n"
    "Prints what grew and shrank, by stack; also between runs and builds with other addresses.\n"
    "  --at TIME            the moment: 10s after the start, 50% of the runtime, or Unix\n"
    "                       milliseconds; given twice: before, then after; default: the end\n"
    "  --cost WHAT          live (default), allocated, count, temporary, peak\n"
    "  --json               all stacks, as doc/diff.schema.json describes it\n"
    "  --collapsed          folded stacks with two numbers, as difffolded.pl writes them\n"
    "  --flamegraph SVG     differential flame graph: red grew, blue shrank\n"
    "  --fail-above SIZE    exit with 19 if all together, or one function, grew by more: 1MB\n"
    "  --top N              stacks in each list of the table (default 5)\n"
    "  --full-stacks        every frame of the table's stacks, also of libc and the C++ library\n"
    "  -o, --output FILE    write there instead of standard output\n"
    "Filters: only allocations that meet all of them are counted; see doc/filters.md.\n";

enum { DIFF_TEXT, DIFF_JSON, DIFF_COLLAPSED, DIFF_FLAMEGRAPH };

struct request {
	const char *path[2], *output;
	struct amount at[2];
	int npaths, nmoments, format;
	enum cost cost;
	uint32_t top;
	bool full_stacks;
	bool limited; /* by --fail-above */
	uint64_t limit;
	struct filter filter;
};

static int write_diff(const struct diff *d, const struct request *r, FILE *out)
{
	switch (r->format) {
	case DIFF_JSON:
		return diff_json(d, out);
	case DIFF_COLLAPSED:
		return diff_folded(d, out);
	case DIFF_FLAMEGRAPH:
		return diff_flame(d, out);
	default:
		diff_text(d, r->top, out);
		return 0;
	}
}

/* Prints what grew by more than --fail-above.  Return: 0, MP_EXIT_GREW, or a negative errno. */
static int judge(const struct diff *d, const struct request *r)
{
	int64_t total = (int64_t)(d->side[1].cost - d->side[0].cost);
	bool bytes = cost_is_bytes(d->cost);
	struct diff_growths g;
	int ret = 0;

	if (!r->limited)
		return 0;
	if (diff_growths_find(d, &g))
		return -ENOMEM;
	if (total > 0 && (uint64_t)total > r->limit) {
		fprintf(stderr, "memprof: %s grew by %s in all, more than %s\n", cost_text(d->cost),
			bytes ? human((uint64_t)total) : thousands((uint64_t)total),
			bytes ? human(r->limit) : thousands(r->limit));
		ret = MP_EXIT_GREW;
	}
	for (size_t i = 0; i < g.list.n; i++) {
		const struct diff_growth *one = &g.list.at[i];

		if (one->change <= 0 || (uint64_t)one->change <= r->limit)
			break;
		ret = MP_EXIT_GREW;
		if (i < r->top)
			fprintf(stderr, "memprof: %s grew by %s, more than %s\n",
				printable(one->frame->function),
				bytes ? human((uint64_t)one->change)
				      : thousands((uint64_t)one->change),
				bytes ? human(r->limit) : thousands(r->limit));
	}
	vec_free(&g.list);
	return ret;
}

/* Tells that culled blocks are not among those that were live at a moment. */
static void tell_culled(const struct model *m)
{
	if (m->sums.culled_blocks)
		fprintf(
		    stderr,
		    "memprof: %s has only sums of %s, which lived shorter than the others: what "
		    "was live at a moment is without them; attach --history records every event\n",
		    printable(m->source.path), counted(m->sums.culled_blocks, "block"));
}

static int set_moments(struct diff_side side[2], const struct request *r, struct mp_err *err)
{
	for (int i = 0; i < 2 && i < r->nmoments; i++) {
		const struct model *m = side[i].m;

		side[i].has_moment = true;
		side[i].at_ns =
		    amount_ns(&r->at[i], m->info.start_unix_ns, m->facts.end_ns, false, 0);
		if (side[i].at_ns > m->facts.end_ns)
			return mp_fail(err, MP_EXIT_USAGE, -ERANGE,
				       "diff: --at %.3f s: %s ends at %.3f s",
				       (double)side[i].at_ns / 1e9, m->source.path,
				       (double)m->facts.end_ns / 1e9);
	}
	if (r->nmoments)
		tell_culled(side[0].m);
	return 0;
}

/* Return: 0, MP_EXIT_GREW, or a negative errno with @err. */
static int compare_recordings(const struct request *r, struct model m[2], struct mp_err *err)
{
	struct diff_side side[2] = {{.m = &m[0]}, {.m = &m[r->npaths == 2]}};
	FILE *out = NULL;
	struct diff d;
	int ret = set_moments(side, r, err), closed, grew;

	if (ret)
		return ret;
	ret = diff_make(&side[0], &side[1], r->cost, &d, err);
	if (ret)
		return ret;
	out = output_open(r->output, false, err);
	if (!out) {
		diff_free(&d);
		return -EIO;
	}
	ret = write_diff(&d, r, out);
	closed = output_close(out);
	ret = ret ? ret : closed;
	grew = judge(&d, r);
	diff_free(&d);
	if (ret)
		return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write the report: %s",
			       strerror(-ret));
	return grew < 0 ? mp_fail(err, MP_EXIT_FAILURE, grew, "out of memory") : grew;
}

static int suits(const struct request *r, const struct model *m, struct mp_err *err)
{
	if (m->info.what == MP_PAGE_FAULTS)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s is a recording of page faults; diff compares allocations",
			       m->source.path);
	if (m->info.live_only && r->cost != COST_LEAKED)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "%s has only the live heap (--live-only): diff compares it with "
			       "--cost live",
			       m->source.path);
	if (cost_is_of_faults(r->cost))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "--cost: faulted, faults and major need a recording of page faults");
	return 0;
}

static int run_diff(const struct request *r)
{
	struct progress bar;
	struct model_options o = {.filter = &r->filter, .progress = {progress_tell, &bar}};
	struct mp_err err = {0};
	struct model m[2] = {0};
	int loaded = 0, ret = 0;

	while (loaded < r->npaths && !ret) {
		progress_begin(&bar, "reading");
		ret = model_load(r->path[loaded], &o, &m[loaded], &err);
		progress_end(&bar);
		if (!ret && m[loaded].source.truncated)
			fprintf(stderr, "memprof: %s: %s\n", printable(r->path[loaded]),
				m[loaded].source.truncated);
		if (!ret)
			ret = suits(r, &m[loaded], &err);
		m[loaded].shown.full = r->full_stacks;
		if (!ret)
			filter_tell_empty(&r->filter, &m[loaded]);
		loaded += m[loaded].source.path != NULL;
	}
	if (!ret)
		ret = compare_recordings(r, m, &err);
	while (loaded--)
		model_free(&m[loaded]);
	return ret < 0 ? complain(&err) : ret;
}

static int parse_option(int c, struct request *r, int *formats)
{
	char *end;

	switch (c) {
	case 'a':
		if (r->nmoments == 2)
			return usage_error("diff: --at: at most two moments");
		if (!amount_time(optarg, &r->at[r->nmoments++]))
			return usage_error("diff: --at: '%s' is not a time; try 10s, 500ms or 50%%",
					   optarg);
		return 0;
	case 'C':
		if (!cost_parse(optarg, &r->cost))
			return usage_error("diff: --cost: '%s' is none of live, allocated, count, "
					   "peak, temporary",
					   optarg);
		return 0;
	case 'j':
	case 'c':
	case 'f':
		++*formats;
		r->format = c == 'j' ? DIFF_JSON : c == 'c' ? DIFF_COLLAPSED : DIFF_FLAMEGRAPH;
		if (c == 'f')
			r->output = optarg;
		return 0;
	case 'n':
		r->top = (uint32_t)strtoul(optarg, &end, 10);
		if (*optarg < '0' || *optarg > '9' || *end)
			return usage_error("diff: --top: '%s' is not a number", optarg);
		return 0;
	case 'k':
		r->full_stacks = true;
		return 0;
	case 'o':
		r->output = optarg;
		return 0;
	case 'F':
		r->limited = amount_bytes(optarg, &r->limit);
		return r->limited
			   ? 0
			   : usage_error("diff: --fail-above: '%s' is not a size such as 1MB",
					 optarg);
	default:
		return filter_option("diff", &r->filter, c, optarg) ? 0 : MP_EXIT_USAGE;
	}
}

/* Return: 0; the exit status after an error; or -1 if the help was printed. */
static int parse_arguments(struct request *r, int argc, const struct filter_options *o)
{
	int c, formats = 0, status;

	while ((c = getopt_long(argc, o->argv, ":o:h", o->all, NULL)) != -1) {
		if (c == '?' || c == ':')
			return option_error("diff", c, o->argv, o->all);
		if (c == 'h') {
			fputs(help, stdout);
			filter_help();
			return -1;
		}
		status = parse_option(c, r, &formats);
		if (status)
			return status;
	}
	for (; optind < argc && r->npaths < 2; optind++)
		r->path[r->npaths++] = o->argv[optind];
	if (optind < argc)
		return usage_error("diff: unexpected argument '%s'", o->argv[optind]);
	if (formats > 1)
		return usage_error("diff: one format at a time");
	if (!r->npaths)
		return usage_error("diff: which recordings?");
	if (r->npaths == 1 && !r->nmoments)
		return usage_error("diff: give a second recording, or --at TIME");
	return 0;
}

int cmd_diff(int argc, char **argv)
{
	static const struct option options[] = {{"at", required_argument, NULL, 'a'},
						{"cost", required_argument, NULL, 'C'},
						{"json", no_argument, NULL, 'j'},
						{"collapsed", no_argument, NULL, 'c'},
						{"full-stacks", no_argument, NULL, 'k'},
						{"top", required_argument, NULL, 'n'},
						{"fail-above", required_argument, NULL, 'F'},
						{"flamegraph", required_argument, NULL, 'f'},
						{"help", no_argument, NULL, 'h'},
						{"output", required_argument, NULL, 'o'},
						{0}};
	struct request r = {.cost = COST_LEAKED, .top = 5};
	struct filter_options o = {0};
	int status;

	filter_init(&r.filter);
	if (filter_options_new(&o, options, argc, argv)) {
		fprintf(stderr, "memprof: out of memory\n");
		status = MP_EXIT_FAILURE;
	} else {
		status = parse_arguments(&r, argc, &o);
	}
	if (!status)
		status = run_diff(&r);
	filter_options_free(&o);
	filter_free(&r.filter);
	return status < 0 ? MP_EXIT_OK : status;
}
