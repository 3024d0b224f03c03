/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/top.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "cmd/own_recorder.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "export/text/terminal.h"
#include "lib/printable.h"
#include "model/filter/pattern.h"
#include "record/pieces/carry.h"

#define LEAST_DELAY_MS 100
#define MOST_DELAY_MS  60000

static const char help[] =
    "usage: memprof top -p PID | -n NAME [options]\n"
    "Shows in the terminal, live, where the memory of a running process goes: places by live "
    "bytes,\n"
    "growth, allocations a second and the share of temporary ones; ? lists the keys.  Looks at "
    "the\n"
    "recording that is going on; if there is none, records, and leaves the process as it was.\n"
    "  -p, --pid PID        the process\n"
    "  -n, --name NAME      the process with this name\n"
    "  -d, --delay SECONDS  between two looks (default 1; 0.1 to 60)\n"
    "      --by WHAT        what a row is: line (default), function, library, thread or stack\n"
    "      --sort WHAT      order of rows: live (default), blocks, growth, since-mark, "
    "allocations,\n"
    "                       allocated, temporary or name\n"
    "      --filter REGEX   only rows whose function, source or library match the regular\n"
    "                       expression\n"
    "      --full-stacks    every frame of a stack with its full name\n"
    "  -o, --output FILE    keep the recording there; without: it is removed at the end\n";

struct arguments {
	struct top_options top;
	const char *output;
};

static int check_filter(const char *text)
{
	struct pattern *p = NULL;
	struct mp_err err = {0};

	if (pattern_new("filter", text, &p, &err))
		return usage_error("top: --filter: %s", err.what);
	pattern_free(p);
	return 0;
}

/* Return: 0, or the exit status after it printed an error. */
static int take_option(struct arguments *a, int c)
{
	switch (c) {
	case 'd':
		if (parse_duration(optarg, &a->top.delay_ms) && a->top.delay_ms >= LEAST_DELAY_MS &&
		    a->top.delay_ms <= MOST_DELAY_MS)
			return 0;
		return usage_error("top: --delay: '%.100s' is not a number of seconds from 0.1 to "
				   "60",
				   optarg);
	case 'b':
		if (top_parse_by(optarg, &a->top.by))
			return 0;
		return usage_error(
		    "top: --by: '%.100s' is none of line, function, library, thread, "
		    "stack",
		    optarg);
	case 's':
		if (top_parse_sort(optarg, &a->top.sort))
			return 0;
		return usage_error("top: --sort: '%.100s' is none of live, blocks, growth, "
				   "since-mark, allocations, allocated, temporary, name",
				   optarg);
	case 'f':
		a->top.filter = optarg;
		return check_filter(optarg);
	case 'F':
		a->top.full = true;
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	default:
		return process_option("top", c, optarg, &a->top.pid);
	}
}

static int watch(const struct arguments *a)
{
	const struct recording_options o = {.path = a->output, .carry_budget = CARRY_BUDGET};
	struct own_recorder r;
	struct mp_err err = {0};
	int status, ended;

	if (top_check_terminal(&err))
		return usage_error("top: %s", err.what);
	status = own_recorder_want("top", a->top.pid, &o, &r);
	if (status)
		return status;
	if (top_run(&a->top, &err))
		status = complain(&err);
	ended = own_recorder_end(&r);
	return status ? status : ended;
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = {PROCESS_LONG,
						{"delay", required_argument, NULL, 'd'},
						{"by", required_argument, NULL, 'b'},
						{"sort", required_argument, NULL, 's'},
						{"filter", required_argument, NULL, 'f'},
						{"full-stacks", no_argument, NULL, 'F'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct arguments a = {.top = {.delay_ms = 1000,
				      /* --color and NO_COLOR */
				      .colours = *term_on(stdout, TERM_BOLD) != 0}};
	int c, status;

	while ((c = getopt_long(argc, argv, ":ho:d:" PROCESS_SHORT, options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == '?' || c == ':')
			return option_error("top", c, argv, options);
		status = take_option(&a, c);
		if (status)
			return status;
	}
	if (optind < argc)
		return unexpected_argument("top", argv[optind]);
	if (!a.top.pid)
		return process_missing("top");
	return watch(&a);
}
