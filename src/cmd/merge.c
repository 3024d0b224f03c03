/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "control/descriptors.h"
#include "lib/human.h"
#include "lib/open_files.h"
#include "lib/printable.h"
#include "record/pieces/merge.h"

static const char help[] =
    "usage: memprof merge RECORDING... -o OUT\n"
    "Makes one recording of several.  The pieces of a recording (--rotate) become what one\n"
    "file would have been.  Recordings of several processes (--follow-fork) are aligned by\n"
    "the clock; each block stays in its process, equal stacks are counted together.\n"
    "  -o, --output FILE  the new recording\n";

static void print_result(const struct merge_result *r, const char *output)
{
	printf("%s: %s of %s\n", printable(output), counted(r->pieces, "recording"),
	       counted(r->processes, "process"));
	if (r->truncated)
		fprintf(stderr, "memprof: one of the recordings was cut off; so is %s\n",
			printable(output));
}

int cmd_merge(int argc, char **argv)
{
	static const struct option options[] = {
	    {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *output = NULL;
	struct merge_result result;
	struct mp_err err = {0};
	int c;

	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			output = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			return option_error("merge", c, argv, options);
		}
	}
	if (optind == argc)
		return usage_error("merge: which recordings?");
	if (!output)
		return usage_error("merge: give the file of the new recording with -o");
	open_files_raise();
	if (want_descriptors(argc - optind < 50 ? (uint32_t)(argc - optind) + 8 : 58, &err) ||
	    recording_merge(argv + optind, (uint32_t)(argc - optind), output, &result, &err))
		return complain(&err);
	print_result(&result, output);
	return MP_EXIT_OK;
}
