/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/target.h"
#include "cmd/background.h"
#include "cmd/cmd.h"
#include "cmd/notices.h"
#include "cmd/options.h"
#include "cmd/process.h"
#include "cmd/pushing.h"
#include "cmd/signals.h"
#include "record/carry.h"

static const char help[] =
    "usage: memprof attach -p PID | -n NAME [-o FILE] [options]\n"
    "Records every allocation of a running process, with its stack, until Ctrl-C, --for or\n"
    "memprof detach; then leaves the process as it was.\n"
    "  -p, --pid PID        the process\n"
    "  -n, --name NAME      the process with this name\n"
    "      --background     return to the shell once it is recording\n" RECORDING_HELP PUSHING_HELP;

/* Runs the recorder in a terminal session of its own.  Returns when it is recording. */
static int to_background(struct target *t, const struct recording_options *o)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (child < 0) {
		fprintf(stderr, "memprof: cannot fork: %s\n", strerror(errno));
		return MP_EXIT_FAILURE;
	}
	if (child == 0) {
		background_leave_terminal();
		return record(t, o);
	}
	if (!background_wait(child, t->pid, record_follows(o), &status))
		return status;
	printf("recording process %d in the background (recorder %d); end it with: memprof detach "
	       "-p %d\n",
	       t->pid, child, t->pid);
	return MP_EXIT_OK;
}

static int attach(pid_t pid, struct recording_options *o, bool background)
{
	struct mp_err err = {0};
	struct target t;
	int status = recording_options_settle("attach", o);

	if (status)
		return status;
	o->notices = notices_printed(background);
	o->orders = orders_by_signal();
	o->steps = debug_steps;
	if (background && o->via_kernel)
		return usage_error("attach: --background cannot be used with --via=kernel: the "
				   "probes exist only while the command runs");
	if (target_look(&t, pid, &err))
		return complain(&err);
	t.steps = debug_steps();
	status = background ? to_background(&t, o) : record(&t, o);
	target_close(&t);
	return status;
}

static int parse_and_run(int argc, char **argv, struct pushing *p)
{
	static const struct option options[] = {PROCESS_LONG,
						{"background", no_argument, NULL, 'B'},
						{"help", no_argument, NULL, 'h'},
						RECORDING_LONG,
						PUSHING_LONG,
						{0}};
	struct recording_options o = {.carry_budget = CARRY_BUDGET};
	bool background = false;
	pid_t pid = 0;
	int c, status;

	if (recording_environment("attach", &o))
		return MP_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, ":h" PROCESS_SHORT RECORDING_SHORT, options, NULL)) !=
	       -1) {
		int taken = recording_option("attach", c, optarg, &o);

		taken = taken ? taken : pushing_option(p, c, optarg);
		if (taken < 0)
			return MP_EXIT_USAGE;
		if (taken)
			continue;
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'B')
			background = o.quiet = true;
		else if (c != 'p' && c != 'n')
			return option_error("attach", c, argv, options);
		else if ((status = process_option("attach", c, optarg, &pid)))
			return status;
	}
	if (optind < argc)
		return unexpected_argument("attach", argv[optind]);
	if (!pid)
		return process_missing("attach");
	if (pushing_wanted(p) && background)
		return usage_error("attach: --background cannot be used with --push and --metrics");
	status = pushing_settle(p, &o);
	if (!status)
		status = pushing_wanted(p) ? pushing_run(p, pid, &o) : attach(pid, &o, background);
	return status;
}

int cmd_attach(int argc, char **argv)
{
	struct pushing p = {0};
	const int status = parse_and_run(argc, argv, &p);

	pushing_free(&p);
	return status;
}
