/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/target.h"
#include "cmd/background.h"
#include "cmd/cmd.h"
#include "cmd/continuous.h"
#include "cmd/notices.h"
#include "cmd/options/options.h"
#include "cmd/options/process.h"
#include "cmd/signals.h"
#include "record/pieces/carry.h"

static const char help[] =
    "usage: memprof attach -p PID | -n NAME | --all [-o FILE] [options]\n"
    "Records every allocation of a running process, with its stack, until Ctrl-C, --for or\n"
    "memprof detach; then leaves the process as it was.\n"
    "  -p, --pid PID        the process; several are possible\n"
    "  -n, --name NAME      the process with this name; with --push, --metrics or another -n: all\n"
    "                       with it, also those that start later\n"
    "      --background     return to the shell once it is recording\n" RECORDING_HELP
	CONTINUOUS_HELP;

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

/* What the command line says. */
struct arguments {
	struct continuous_options continuous;
	struct recording_options recording;
	/* Of -p and -n. */
	VEC(struct given {
		int opt;
		const char *value;
	})
	given;
	bool background, help;
};

/* Return: 0, or the exit status after it printed an error. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {PROCESS_LONG,
						{"background", no_argument, NULL, 'B'},
						{"help", no_argument, NULL, 'h'},
						RECORDING_LONG,
						CONTINUOUS_LONG,
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, ":h" PROCESS_SHORT RECORDING_SHORT, options, NULL)) !=
	       -1) {
		int taken = recording_option("attach", c, optarg, &a->recording);

		taken = taken ? taken : continuous_option(&a->continuous, c, optarg);
		if (taken < 0)
			return MP_EXIT_USAGE;
		if (taken)
			continue;
		if (c == 'B')
			a->background = a->recording.quiet = true;
		else if (c == 'h')
			a->help = true;
		else if (c != 'p' && c != 'n')
			return option_error("attach", c, argv, options);
		else if (vec_push(&a->given, ((struct given){c, optarg})))
			return usage_error("attach: too many processes");
	}
	if (a->help)
		return 0;
	if (optind < argc)
		return unexpected_argument("attach", argv[optind]);
	return a->given.n || a->continuous.fleet.filter.all ? 0 : process_missing("attach");
}

static int run_one(struct arguments *a)
{
	pid_t pid = 0;
	int status = continuous_settle(&a->continuous, false, &a->recording);

	if (!status)
		status = process_option("attach", a->given.at[0].opt, a->given.at[0].value, &pid);
	return status ? status : attach(pid, &a->recording, a->background);
}

static int run_continuous(struct arguments *a)
{
	struct continuous_options *c = &a->continuous;
	int status = 0;

	if (a->background)
		return usage_error("attach: --background cannot be used with --push, --metrics, "
				   "--all and several processes");
	for (size_t i = 0; !status && i < a->given.n; i++)
		status = continuous_process(c, a->given.at[i].opt, a->given.at[i].value);
	status = status ? status : continuous_settle(c, true, &a->recording);
	status = status ? status : recording_options_settle("attach", &a->recording);
	return status ? status : continuous_run(c, &a->recording);
}

/* Return: how many processes -p and -n name, as far as that is known. */
static size_t count_processes(const struct arguments *a)
{
	size_t n = 0;

	vec_for_each (&a->given, g) {
		struct tids several = {0};

		n += g->opt == 'p' && process_read_several(g->value, &several) ? several.list.n : 1;
		vec_free(&several.list);
	}
	return n;
}

int cmd_attach(int argc, char **argv)
{
	struct arguments a = {.recording = {.carry_budget = CARRY_BUDGET}};
	int status;

	if (recording_environment("attach", &a.recording))
		return MP_EXIT_USAGE;
	status = parse_arguments(argc, argv, &a);
	if (!status && a.help)
		fputs(help, stdout);
	else if (!status)
		status = continuous_wanted(&a.continuous, count_processes(&a)) ? run_continuous(&a)
									       : run_one(&a);
	continuous_free(&a.continuous);
	vec_free(&a.given);
	return status;
}
