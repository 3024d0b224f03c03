/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/servers.h"
#include "export/symbolize.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "lib/vec.h"

static const char help[] =
    "usage: memprof symbolize RECORDING -o OUT [options]\n"
    "Writes a copy with functions and lines, from the files and debug files of this machine\n"
    "(by build id) or else from the embedded binaries (--embed), so that it can be read anywhere.\n"
    "--anonymize removes names.  The copy has no embedded binaries.\n"
    "  -d, --debug-dir DIR  more debug files or binaries; may be repeated\n"
    "  --anonymize HOW      none (default); partial: paths without folders, command line without\n"
    "                       arguments; full: no names of functions, files, libraries, threads, "
    "and\n"
    "                       no build ids\n"
    "  -o, --output FILE    the new recording\n" SERVERS_HELP;

struct request {
	VEC(const char *) dirs; /* ended by NULL */
	const char *output;
	enum anonymize anonymize;
	enum debuginfod_ask ask;
};

static bool parse_anonymize(const char *text, enum anonymize *how)
{
	static const char *const name[] = {"none", "partial", "full"};

	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, name[i])) {
			*how = (enum anonymize)i;
			return true;
		}
	}
	return false;
}

/* Return: 0; the exit status after an error; or -1 if the help was printed. */
static int parse_arguments(struct request *r, int argc, char **argv)
{
	static const struct option options[] = {{"debug-dir", required_argument, NULL, 'd'},
						{"anonymize", required_argument, NULL, 'a'},
						{"output", required_argument, NULL, 'o'},
						{"debuginfod", no_argument, NULL, 's'},
						{"no-debuginfod", no_argument, NULL, 'n'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, ":o:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			if (vec_push(&r->dirs, optarg))
				return usage_error("symbolize: out of memory");
			break;
		case 'a':
			if (!parse_anonymize(optarg, &r->anonymize))
				return usage_error("symbolize: --anonymize: '%s' is neither none, "
						   "partial nor full",
						   optarg);
			break;
		case 'o':
			r->output = optarg;
			break;
		case 's':
			r->ask = DEBUGINFOD_ALWAYS;
			break;
		case 'n':
			r->ask = DEBUGINFOD_NEVER;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return option_error("symbolize", c, argv, options);
		}
	}
	if (optind == argc)
		return usage_error("symbolize: which recording?");
	if (optind + 1 < argc)
		return usage_error("symbolize: unexpected argument '%s'", argv[optind + 1]);
	if (!r->output)
		return usage_error("symbolize: give the file of the new recording with -o");
	return vec_push(&r->dirs, NULL) ? usage_error("symbolize: out of memory") : 0;
}

static int symbolize(const struct request *r, const char *path)
{
	struct symbolize_options o = {r->dirs.at, servers_new(r->ask), r->anonymize};
	struct symbolize_result result;
	struct mp_err err = {0};
	int ret = recording_symbolize(path, r->output, &o, &result, &err);

	servers_report(o.servers, stdout);
	debuginfod_free(o.servers);
	if (ret)
		return complain(&err);
	printf("%s: %s with a function (%s before), %s with a line (%s before)\n",
	       counted(result.addresses, "address"), thousands(result.after),
	       thousands(result.before), thousands(result.lines_after),
	       thousands(result.lines_before));
	if (result.binaries)
		printf("binaries found only in the recording: %s; the copy has none\n",
		       thousands(result.binaries));
	if (result.truncated)
		fprintf(stderr, "memprof: %s was cut off; so is %s\n", printable(path),
			printable(r->output));
	return MP_EXIT_OK;
}

int cmd_symbolize(int argc, char **argv)
{
	struct request r = {0};
	int status = parse_arguments(&r, argc, argv);

	if (!status)
		status = symbolize(&r, argv[optind]);
	vec_free(&r.dirs);
	return status < 0 ? MP_EXIT_OK : status;
}
