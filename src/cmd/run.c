/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include "control/follow.h"
#include "record/carry.h"

static const char help[] =
    "usage: memprof run [-o FILE] [options] -- PROGRAM [ARGUMENT...]\n"
    "Starts a program and records it from its first instruction, constructors included.\n"
    "The options are those of memprof attach, except -p and --background.\n"
    "Exit status: memprof's own if something failed, else the program's (128 + signal).\n";

int launch_and_record(char *const argv[], const struct recording_options *o)
{
	struct mp_err err = {0};
	struct target t;
	int status, child = 0;

	if (target_launch(&t, argv, &err))
		return complain(&err);
	t.steps = debug_steps();
	status = recording_run(&t, o, true);
	target_close(&t);
	/* After Ctrl-C or --for the program continues, and as its parent memprof waits for it. */
	if (waitpid(t.pid, &child, __WALL) == t.pid && !status) {
		if (WIFEXITED(child))
			return WEXITSTATUS(child);
		if (WIFSIGNALED(child))
			return 128 + WTERMSIG(child);
	}
	return status;
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
	    {"help", no_argument, NULL, 'h'}, RECORDING_LONG, {0}};
	struct recording_options o = {.carry_budget = CARRY_BUDGET};
	int c, status;

	if (recording_environment(&o))
		return MP_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "+:h" RECORDING_SHORT, options, NULL)) != -1) {
		int taken = recording_option(c, optarg, &o);

		if (taken < 0)
			return MP_EXIT_USAGE;
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (!taken)
			return option_error("run", c, argv);
	}
	if (optind == argc)
		return usage_error("run: which program? give -- PROGRAM [ARGUMENT...]");
	status = recording_options_settle(&o);
	if (status)
		return status;
	return o.follow_fork || o.follow_exec ? follow_run(0, argv + optind, &o)
					      : launch_and_record(argv + optind, &o);
}
