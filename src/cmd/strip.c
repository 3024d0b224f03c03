/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "lib/printable.h"
#include "model/filter/amount.h"
#include "record/culling/cull_file.h"

static const char help[] =
    "usage: memprof strip RECORDING -o OUT [--threshold TIME]\n"
    "Writes a smaller recording without the events of freed blocks.  Their numbers and bytes\n"
    "are kept by stack, thread and function, so that all totals stay the same.\n"
    "  --threshold TIME   leave out only blocks that lived shorter than this (default: all)\n"
    "  -o, --output FILE  the new recording\n";

int cmd_strip(int argc, char **argv)
{
	static const struct option options[] = {{"threshold", required_argument, NULL, 't'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	uint64_t age_ns = UINT64_MAX;
	const char *output = NULL;
	struct mp_err err = {0};
	bool truncated;
	int c;

	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (c) {
		case 't':
			if (!amount_duration(optarg, &age_ns))
				return usage_error("strip: --threshold: '%s' is not a time; try "
						   "10s or 500ms",
						   optarg);
			break;
		case 'o':
			output = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			return option_error("strip", c, argv, options);
		}
	}
	if (optind == argc)
		return usage_error("strip: which recording?");
	if (optind + 1 < argc)
		return usage_error("strip: unexpected argument '%s'", argv[optind + 1]);
	if (!output)
		return usage_error("strip: give the file of the new recording with -o");
	if (recording_strip(argv[optind], output, age_ns, &truncated, &err))
		return complain(&err);
	if (truncated)
		fprintf(stderr, "memprof: %s was cut off; so is %s\n", printable(argv[optind]),
			printable(output));
	return MP_EXIT_OK;
}
