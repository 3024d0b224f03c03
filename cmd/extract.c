/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "report/extract.h"

static const char help[] =
    "usage: memprof extract RECORDING [-o DIR]\n"
    "What a recording holds beside events, as CSV files: modules (with build ids), maps, symbols,\n"
    "mallopts, threads, marks, memory. A recording holds no binaries and no environment.\n"
    "  -o, --output DIR  the folder they go to, default RECORDING.extracted\n";

int cmd_extract(int argc, char **argv)
{
	static const struct option options[] = {
	    {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *dir = NULL;
	struct extract_result result;
	struct mp_err err = {0};
	char beside[4096];
	int c;

	while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			dir = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			return option_error("extract", c, argv);
		}
	}
	if (optind == argc)
		return usage_error("extract: which recording?");
	if (optind + 1 < argc)
		return usage_error("extract: unexpected argument '%s'", argv[optind + 1]);
	snprintf(beside, sizeof(beside), "%s.extracted", argv[optind]);
	dir = dir ? dir : beside;
	if (recording_extract(argv[optind], dir, &result, &err))
		return complain(&err);
	for (int i = 0; i < EXTRACT_KINDS; i++) {
		if (result.file[i])
			printf("%s/%s: %s lines\n", dir, result.file[i],
			       thousands(result.lines[i]));
	}
	if (result.truncated)
		fprintf(stderr, "memprof: %s was cut off: this is what it has up to there\n",
			argv[optind]);
	return MP_EXIT_OK;
}
