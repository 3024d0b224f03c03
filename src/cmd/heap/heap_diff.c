/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof heap diff: compares saved looks. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/heap/heap_growth.h"
#include "cmd/heap/leaks_cmd.h"
#include "cmd/options/parse.h"
#include "leaks/growth/look_file.h"
#include "lib/human.h"
#include "lib/printable.h"

static const char help[] =
    "usage: memprof heap diff BEFORE AFTER... [options]\n"
    "Prints what grew between looks that memprof heap --save wrote, also between runs of a "
    "program.\n"
    "      --budget AMOUNT  exit with 1 if all live blocks grew by more: 10MB, or 10MB/h\n"
    "      --depth N        levels below each root (default 4; of JSON 32)\n"
    "      --count N        lines of each level, and types (default 10; of JSON 100)\n"
    "      --json FILE      write the result as JSON\n"
    "exit status: 0 within the budget, 1 above it, 2 usage, 3 failed\n";

enum { OPT_BUDGET = 256, OPT_DEPTH, OPT_COUNT, OPT_JSON };

static const struct option options[] = {{"budget", required_argument, NULL, OPT_BUDGET},
					{"depth", required_argument, NULL, OPT_DEPTH},
					{"count", required_argument, NULL, OPT_COUNT},
					{"json", required_argument, NULL, OPT_JSON},
					{"help", no_argument, NULL, 'h'},
					{0}};

static void print_process(const struct look *l)
{
	const double minutes = (double)l->age_ns / 6e10;

	printf("        process %d (%s)", l->pid, printable(l->name));
	if (l->age_ns && minutes < 120)
		printf(", %.1f min after it began", minutes);
	else if (l->age_ns)
		printf(", %.1f h after it began", minutes / 60);
	putchar('\n');
}

static int compare_looks(struct look *look, size_t n, const struct growth_request *q)
{
	const struct look *list[GROWTH_MAX_LOOKS];
	struct mp_err err = {0};
	struct heap_growth g;
	int ret, status;

	for (size_t i = 0; i < n; i++) {
		list[i] = &look[i];
		growth_print_look(&look[i], i + 1, n);
		print_process(&look[i]);
	}
	ret = growth_make(&g, list, n, &err);
	status = ret ? growth_complain(ret, &err) : growth_report(&g, q, NULL);
	growth_free(&g);
	return status;
}

/* Return: 0, or the exit status after it printed an error. */
static int take_option(int opt, char *const *argv, struct growth_request *q)
{
	bool ok = true;

	switch (opt) {
	case OPT_BUDGET:
		q->has_budget = true;
		if (!growth_parse_budget(optarg, &q->budget))
			return usage_error("heap: --budget: '%s' is not an amount such as 10MB or "
					   "10MB/h",
					   optarg);
		break;
	case OPT_DEPTH:
		ok = parse_count(optarg, &q->depth) && q->depth && q->depth <= RETAINED_MAX_DEPTH;
		break;
	case OPT_COUNT:
		ok = parse_count(optarg, &q->count) && q->count;
		break;
	case OPT_JSON:
		q->json = optarg;
		break;
	default:
		return option_error("heap", opt, argv, options);
	}
	return ok ? 0
		  : usage_error("heap: --%s: '%s' is not a number in its range",
				option_name(options, opt), optarg);
}

int heap_diff(int argc, char **argv)
{
	struct growth_request q = {0};
	struct mp_err err = {0};
	struct look *look;
	size_t n, read = 0;
	int opt, status = 0, ret = 0;

	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		status = take_option(opt, argv, &q);
		if (status)
			return status;
	}
	n = (size_t)(argc - optind);
	if (n < 2 || n > GROWTH_MAX_LOOKS)
		return usage_error("heap: diff needs 2 to %d files", GROWTH_MAX_LOOKS);
	look = calloc(n, sizeof(*look));
	if (!look)
		return growth_complain(
		    -ENOMEM, &(struct mp_err){.exit = MP_EXIT_FAILURE, .what = "out of memory"});
	while (read < n && !ret) {
		ret = look_read(&look[read], argv[optind + (int)read], &err);
		read++;
	}
	status = ret ? growth_complain(ret, &err) : compare_looks(look, n, &q);
	while (read--)
		look_free(&look[read]);
	free(look);
	return status;
}
