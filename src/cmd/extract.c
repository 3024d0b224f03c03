/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include "cmd/cmd.h"
#include "export/extract.h"
#include "lib/human.h"
#include "lib/printable.h"

static const char help[] =
    "usage: memprof extract RECORDING [-o DIR]\n"
    "Writes what a recording contains besides events as CSV files: modules (with build ids),\n"
    "maps, symbols, mallopts, threads, marks, memory; and the embedded binaries (--embed)\n"
    "to DIR/binaries.  A recording does not contain the environment.\n"
    "  -o, --output DIR  folder for the files (default RECORDING.extracted)\n";

/* Return: exit status. */
static int print_result(const struct extract_result *r, const char *recording, const char *dir)
{
	const struct unpack_result *b = &r->binaries;

	for (int i = 0; i < EXTRACT_KINDS; i++) {
		if (r->file[i])
			printf("%s/%s: %s\n", printable(dir), r->file[i],
			       counted(r->lines[i], "line"));
	}
	if (b->files)
		printf("%s/binaries: %s, %s\n", printable(dir), counted(b->files, "file"),
		       human(b->bytes));
	if (r->truncated)
		fprintf(stderr,
			"memprof: %s was cut off: only the part before that was extracted\n",
			printable(recording));
	if (b->left_out[0])
		fprintf(stderr, "memprof: not extracted: %s\n", printable(b->left_out));
	else if (b->damaged)
		fprintf(stderr, "memprof: a binary is damaged, and so is its name\n");
	return b->left_out[0] || b->damaged ? MP_EXIT_RECORDING : MP_EXIT_OK;
}

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
			return option_error("extract", c, argv, options);
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
	return print_result(&result, argv[optind], dir);
}
