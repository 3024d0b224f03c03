/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "cmd/notices.h"
#include "cmd/options/options.h"
#include "cmd/signals.h"
#include "control/follow.h"
#include "control/recording.h"
#include "record/pieces/carry.h"

static const char help[] =
    "usage: memprof run [-o FILE] [options] -- PROGRAM [ARGUMENT...]\n"
    "Starts a program and records it from its first instruction, constructors included.\n"
    "If the program executes another one, as a wrapper script does, that one is recorded instead.\n"
    "Exit status: memprof's own if something failed, else the program's (128 + "
    "signal).\n" RECORDING_HELP;

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
	    {"help", no_argument, NULL, 'h'}, RECORDING_LONG, {0}};
	struct recording_options o = {.carry_budget = CARRY_BUDGET,
				      .replace_at_exec = true,
				      .notices = notices_printed(false),
				      .orders = orders_by_signal(),
				      .steps = debug_steps};
	int c, status;

	if (recording_environment("run", &o))
		return MP_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "+:h" RECORDING_SHORT, options, NULL)) != -1) {
		int taken = recording_option("run", c, optarg, &o);

		if (taken < 0)
			return MP_EXIT_USAGE;
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (!taken)
			return option_error("run", c, argv, options);
	}
	if (optind == argc)
		return usage_error("run: which program? give -- PROGRAM [ARGUMENT...]");
	status = recording_options_settle("run", &o);
	if (status)
		return status;
	/* With --rotate the pieces of several programs would mix. */
	o.replace_at_exec &= !o.follow_exec && !o.via_kernel && !o.rotate;
	return o.follow_fork || o.follow_exec || o.replace_at_exec
		   ? follow_run(0, argv + optind, &o)
		   : recording_launch(argv + optind, &o);
}
