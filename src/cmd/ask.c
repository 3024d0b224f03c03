/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands that send a request to a running recorder: flush, mark, pause, resume. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "control/serve.h"
#include "export/json_gen.h"
#include "inject/find.h"
#include "lib/human.h"
#include "lib/printable.h"

#define READY_TRIES  100 /* five seconds */
#define READY_TRY_US 50000

static const char flush_help[] =
    "usage: memprof flush -p PID [--json]\n"
    "Writes everything that the process did until now to the recording; the recording continues.\n"
    "Prints the position reached: time, events, bytes of the file.\n";
static const char mark_help[] = "usage: memprof mark -p PID [--json] NAME\n"
				"Puts a mark with a name into the recording, at this moment.\n";
static const char pause_help[] =
    "usage: memprof pause -p PID [--json]\n"
    "New blocks are not recorded until memprof resume; the frees of earlier blocks still are.\n";
static const char resume_help[] = "usage: memprof resume -p PID [--json]\n"
				  "Continues the recording after memprof pause.\n";

bool session_peek(pid_t pid, struct ss_control *c, struct ss_journal *j)
{
	uint64_t addr;

	return session_read(pid, &addr, c, j) && session_is_of(j, pid, addr);
}

bool recorder_lives(const struct ss_journal *j)
{
	return j->recorder_pid > 0 && j->recorder_start &&
	       proc_start_time(j->recorder_pid) == j->recorder_start;
}

bool recorder_is_ready(const struct ss_journal *j)
{
	char answer[CONTROL_ANSWER];

	/* Without a socket the recorder cannot be asked. */
	return !j->control[0] || (!control_ask(j->control, j->recorder_pid, "ready", answer) &&
				  !strcmp(answer, "ok"));
}

/* Sends @line to the recorder of @pid.  Return: 0 with @answer, or a negative errno with @err. */
static int ask(pid_t pid, const char *line, struct ss_journal *j, char answer[CONTROL_ANSWER],
	       struct mp_err *err)
{
	struct ss_control c;
	int ret;

	if (!session_peek(pid, &c, j)) {
		ret = session_refuse_recorder(pid, MP_EXIT_NO_SESSION, err);
		return ret ? ret
			   : mp_fail(err, MP_EXIT_NO_SESSION, -ENOENT,
				     "process %d has no memprof session, or none that you are "
				     "allowed to see",
				     pid);
	}
	if (!recorder_lives(j))
		return mp_fail(err, MP_EXIT_NO_SESSION, -ESRCH,
			       "the recorder of process %d is gone; run: memprof attach -p %d, or "
			       "memprof detach -p %d",
			       pid, pid, pid);
	/* The recorder might still be installing its hooks. */
	for (int i = 0; i < READY_TRIES && !recorder_is_ready(j); i++)
		usleep(READY_TRY_US);
	ret = control_ask(j->control, j->recorder_pid, line, answer);
	switch (ret) {
	case 0:
		return 0;
	case -ECONNREFUSED:
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot connect to the recorder (pid %d): it is ending, or runs in "
			       "another network namespace",
			       j->recorder_pid);
	case -EPERM:
		return mp_fail(
		    err, MP_EXIT_PERMISSION, ret,
		    "the control socket belongs to another process, not to the recorder (pid %d)",
		    j->recorder_pid);
	case -EACCES:
		return mp_fail(
		    err, MP_EXIT_PERMISSION, ret,
		    "the recorder (pid %d) accepts requests only from its own user and root",
		    j->recorder_pid);
	case -ECONNRESET:
		strcpy(answer, "ended");
		return 0;
	}
	return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot ask the recorder (pid %d): %s",
		       j->recorder_pid, strerror(-ret));
}

static int print_json(const struct recorder_boundary *b, const char *recording, struct mp_err *err)
{
	yajl_gen g = json_begin(stdout, false);

	if (!g)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	yajl_gen_map_open(g);
	json_number(g, "time_ns", b->time_ns);
	json_number(g, "events", b->events);
	json_number(g, "file_bytes", b->file_bytes);
	json_text(g, "recording", recording);
	yajl_gen_map_close(g);
	putchar('\n');
	yajl_gen_free(g);
	return 0;
}

/* Parses the answer.  Return: 0 with @b, or a negative errno with @err. */
static int understand(const char *answer, const struct ss_journal *j, struct recorder_boundary *b,
		      struct mp_err *err)
{
	if (sscanf(answer, "ok %" SCNu64 " %" SCNu64 " %" SCNu64, &b->time_ns, &b->events,
		   &b->file_bytes) == 3)
		return 0;
	if (!strcmp(answer, "ended"))
		return mp_fail(
		    err, MP_EXIT_NO_SESSION, -ESHUTDOWN,
		    "the recording ended before the request was carried out; it is complete: %s",
		    j->recording);
	return mp_fail(err, MP_EXIT_FAILURE, -EPROTO, "the recorder reports: %s", answer);
}

int ask_flush(pid_t pid, struct recorder_boundary *b, struct mp_err *err)
{
	char answer[CONTROL_ANSWER];
	struct ss_journal j;
	int ret = ask(pid, "flush", &j, answer, err);

	return ret ? ret : understand(answer, &j, b, err);
}

static int show(const char *done, const char *answer, const struct ss_journal *j, bool json)
{
	struct recorder_boundary b = {0};
	struct mp_err err = {0};

	if (understand(answer, j, &b, &err))
		return complain(&err);
	if (json && print_json(&b, j->recording, &err))
		return complain(&err);
	if (!json)
		printf("%s at %.6f s: %s events, %llu bytes of %s\n", done, (double)b.time_ns / 1e9,
		       thousands(b.events), (unsigned long long)b.file_bytes,
		       printable(j->recording));
	return MP_EXIT_OK;
}

static int command(int argc, char **argv, const char *help, const char *done, bool named)
{
	static const struct option options[] = {{"pid", required_argument, NULL, 'p'},
						{"json", no_argument, NULL, 'j'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	char answer[CONTROL_ANSWER], line[512];
	struct mp_err err = {0};
	struct ss_journal j;
	bool json = false;
	pid_t pid = 0;
	int c;

	while ((c = getopt_long(argc, argv, ":p:h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'j')
			json = true;
		else if (c != 'p')
			return option_error(argv[0], c, argv);
		else if (!parse_pid(optarg, &pid))
			return usage_error("%s: -p: '%s' is not a process id", argv[0], optarg);
	}
	if (!pid)
		return usage_error("%s: which process? give -p PID", argv[0]);
	if (named && optind + 1 != argc)
		return usage_error("mark: give one name");
	if (!named && optind < argc)
		return unexpected_argument(argv[0], argv[optind]);
	if (named && (!*argv[optind] || strlen(argv[optind]) > 400 || strchr(argv[optind], '\n')))
		return usage_error("mark: a name is one line of at most 400 bytes");
	snprintf(line, sizeof(line), named ? "%s %s" : "%s", argv[0], argv[optind]);
	if (ask(pid, line, &j, answer, &err))
		return complain(&err);
	return show(done, answer, &j, json);
}

int cmd_flush(int argc, char **argv)
{
	return command(argc, argv, flush_help, "flushed", false);
}

int cmd_mark(int argc, char **argv)
{
	return command(argc, argv, mark_help, "marked", true);
}

int cmd_pause(int argc, char **argv)
{
	return command(argc, argv, pause_help, "paused", false);
}

int cmd_resume(int argc, char **argv)
{
	return command(argc, argv, resume_help, "resumed", false);
}
