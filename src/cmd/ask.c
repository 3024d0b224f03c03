/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands that send a request to a running recorder: flush, mark, pause, resume. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/process.h"
#include "control/requests.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "record/recorder.h"

#define OPTIONS_HELP                                                                               \
	"  -p, --pid PID    the process\n"                                                         \
	"  -n, --name NAME  the process with this name\n"                                          \
	"      --json       print the position reached as JSON\n"

static const char flush_help[] =
    "usage: memprof flush -p PID | -n NAME [--json]\n"
    "Writes everything that the process did until now to the recording; the recording continues.\n"
    "With attach --live-only it writes the live heap, in place of the file before.\n"
    "Prints the position reached: time, events, bytes of the file.\n" OPTIONS_HELP;
static const char mark_help[] =
    "usage: memprof mark -p PID | -n NAME [--json] MARK\n"
    "Puts a mark with a name into the recording, at this moment.\n" OPTIONS_HELP;
static const char pause_help[] = "usage: memprof pause -p PID | -n NAME [--json]\n"
				 "New blocks are not recorded until memprof resume; the frees of "
				 "earlier blocks still are.\n" OPTIONS_HELP;
static const char resume_help[] = "usage: memprof resume -p PID | -n NAME [--json]\n"
				  "Continues the recording after memprof pause.\n" OPTIONS_HELP;

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

static int show(const char *done, const struct recorder_boundary *b, const char *recording,
		bool json)
{
	struct mp_err err = {0};

	if (json && print_json(b, recording, &err))
		return complain(&err);
	if (!json)
		printf("%s at %.6f s: %s, %llu bytes of %s\n", done, (double)b->time_ns / 1e9,
		       counted(b->events, "event"), (unsigned long long)b->file_bytes,
		       printable(recording));
	return MP_EXIT_OK;
}

static int command(int argc, char **argv, const char *help, const char *done, bool named)
{
	static const struct option options[] = {
	    PROCESS_LONG, {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct recorder_boundary b = {0};
	struct mp_err err = {0};
	struct ss_journal j;
	bool json = false;
	char line[512];
	pid_t pid = 0;
	int c, status;

	while ((c = getopt_long(argc, argv, ":h" PROCESS_SHORT, options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (c == 'j')
			json = true;
		else if (c != 'p' && c != 'n')
			return option_error(argv[0], c, argv, options);
		else if ((status = process_option(argv[0], c, optarg, &pid)))
			return status;
	}
	if (!pid)
		return process_missing(argv[0]);
	if (named && optind + 1 != argc)
		return usage_error("mark: give one name");
	if (!named && optind < argc)
		return unexpected_argument(argv[0], argv[optind]);
	if (named && !recorder_is_mark(argv[optind]))
		return usage_error("mark: a name is one line of at most %d bytes",
				   RECORDER_MARK_MOST);
	snprintf(line, sizeof(line), named ? "%s %s" : "%s", argv[0], argv[optind]);
	if (request_send(pid, line, &j, &b, &err))
		return complain(&err);
	return show(done, &b, j.recording, json);
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
