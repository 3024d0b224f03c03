/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"
#include "cmd/cmd.h"
#include "cmd/notices.h"
#include "cmd/options.h"
#include "cmd/parse.h"
#include "control/follow.h"
#include "control/recording.h"
#include "control/requests.h"
#include "inject/family.h"
#include "record/carry.h"

static const char help[] =
    "usage: memprof attach -p PID [-o FILE] [options]\n"
    "Records every allocation of a running process, with its stack, until Ctrl-C, --for or\n"
    "memprof detach; then leaves the process as it was.\n"
    "  -p, --pid PID        the process\n"
    "  -o, --output FILE    the recording (default memprof-%p.memprof; %p pid, %e command,\n"
    "                       %t time, %n count)\n"
    "      --for TIME       end after 30s, 500ms, 5m ...\n"
    "      --background     return to the shell once it is recording\n"
    "      --sample BYTES   record samples: on average one per BYTES requested (512k for\n"
    "                       always-on use)\n"
    "      --follow-fork    record forked children too, each into a file of its own\n"
    "      --follow-exec    also record a program that the process executes (exec)\n"
    "      --lossless       make the process wait when the recorder is behind, instead of losing\n"
    "                       events\n"
    "      --ring-size N    size of each thread's ring, 64k to 64M (default 2M)\n"
    "      --queue-size N   memory limit of the recorder's queue (default 256M)\n"
    "      --via WAY        agent (default), or kernel: uprobes, nothing is put into the process\n"
    "      --event WHAT     allocations (default), or page-faults: which stacks make memory\n"
    "                       resident; recorded by the kernel, nothing is put into the process\n"
    "      --stack-size N   with --via=kernel or page-faults: bytes of stack copied at each\n"
    "                       event (16k)\n"
    "      --free-stacks    record where each block is freed, too\n"
    "      --zero           fill blocks with zeros, as calloc does\n"
    "      --carry-budget N bytes of stacks taken over from an earlier recorder (default 4M)\n"
    "      --cull TIME      keep only sums of blocks that lived shorter than this\n"
    "      --rotate SIZE    begin a new file at this size (FILE-1, FILE-2 ...), each complete by\n"
    "                       itself; memprof merge joins them\n"
    "      --embed          put program and libraries into the recording, to symbolize it\n"
    "                       elsewhere\n"
    "      --depth N        keep only the N innermost frames of each stack\n"
    "      --thread NAME    only threads of this name (fnmatch pattern; up to 16 times)\n"
    "      --paused         start paused; SIGUSR1 to memprof pauses and resumes\n"
    "  -q, --quiet          no progress\n"
    "Each option can also be set in the environment: MEMPROF_RING_SIZE=4M, MEMPROF_LOSSLESS=1.\n";

static bool follows(const struct recording_options *o)
{
	return o->follow_fork || o->follow_exec;
}

static int record(struct target *t, const struct recording_options *o)
{
	struct mp_err err = {0};

	if (!follows(o) && !o->via_kernel && family_leave(t, &err))
		return complain(&err);
	return follows(o) ? follow_run(t->pid, NULL, o) : recording_run(t, o, false);
}

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
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		setsid();
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		return record(t, o);
	}
	for (;;) {
		struct ss_control c;
		struct ss_journal j;

		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : MP_EXIT_FAILURE;
		if (session_peek(t->pid, &c, &j) && j.state == SS_LIVE &&
		    (j.recorder_pid == child || (follows(o) && recorder_lives(&j))) &&
		    recorder_is_ready(&j))
			break;
		usleep(10000);
	}
	printf("recording process %d in the background (recorder %d); end it with: memprof detach "
	       "-p %d\n",
	       t->pid, child, t->pid);
	return MP_EXIT_OK;
}

int cmd_attach(int argc, char **argv)
{
	static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
						{"background", no_argument, NULL, 'B'},
						{"help", no_argument, NULL, 'h'},
						RECORDING_LONG,
						{0}};
	struct recording_options o = {.carry_budget = CARRY_BUDGET};
	struct mp_err err = {0};
	bool background = false;
	struct target t;
	pid_t pid = 0;
	int c, status;

	if (recording_environment(&o))
		return MP_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, ":p:h" RECORDING_SHORT, options, NULL)) != -1) {
		int taken = recording_option(c, optarg, &o);

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
		else if (c != 'p')
			return option_error("attach", c, argv);
		else if (!parse_pid(optarg, &pid))
			return usage_error("attach: -p: '%s' is not a process id", optarg);
	}
	if (optind < argc)
		return unexpected_argument("attach", argv[optind]);
	if (!pid)
		return usage_error("attach: which process? give -p PID");
	status = recording_options_settle(&o);
	if (status)
		return status;
	o.notices = notices_printed(background);
	o.steps = debug_steps;
	if (background && o.via_kernel)
		return usage_error("attach: --background cannot be used with --via=kernel: the "
				   "probes exist only while the command runs");
	if (target_look(&t, pid, &err))
		return complain(&err);
	t.steps = debug_steps();
	status = background ? to_background(&t, &o) : record(&t, &o);
	target_close(&t);
	return status;
}
