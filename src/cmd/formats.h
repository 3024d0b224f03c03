/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output formats of `memprof report`: their options, and the writer of each. */
#ifndef CMD_FORMATS_H
#define CMD_FORMATS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "formats/file.h"
#include "lib/err.h"

struct model;

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_TREE,
	FORMAT_COLLAPSED,
	FORMAT_FLAMEGRAPH,
	FORMAT_ICICLE,
	FORMAT_HEAPTRACK,
	FORMAT_PPROF,
	FORMAT_SPEEDSCOPE,
	FORMAT_CSV,
	FORMAT_ASCII_TREE,
	FORMAT_PLOT,
	FORMAT_REPLAY,
	NFORMATS,
};

struct format_request {
	enum format format;
	bool leaks, bottom_up;
	int cost; /* enum cost; -1: not given */
	uint32_t top;
	double least; /* percent */
};

/* The value that getopt_long() returns for the option of format 0. */
#define FORMAT_OPTION 0x1000
/* clang-format off */
#define FORMAT_OPTIONS \
	{"json", no_argument, NULL, FORMAT_OPTION + FORMAT_JSON}, \
	{"tree", no_argument, NULL, FORMAT_OPTION + FORMAT_TREE}, \
	{"collapsed", no_argument, NULL, FORMAT_OPTION + FORMAT_COLLAPSED}, \
	{"flamegraph", required_argument, NULL, FORMAT_OPTION + FORMAT_FLAMEGRAPH}, \
	{"icicle", required_argument, NULL, FORMAT_OPTION + FORMAT_ICICLE}, \
	{"heaptrack", no_argument, NULL, FORMAT_OPTION + FORMAT_HEAPTRACK}, \
	{"pprof", no_argument, NULL, FORMAT_OPTION + FORMAT_PPROF}, \
	{"speedscope", no_argument, NULL, FORMAT_OPTION + FORMAT_SPEEDSCOPE}, \
	{"csv", no_argument, NULL, FORMAT_OPTION + FORMAT_CSV}, \
	{"ascii-tree", no_argument, NULL, FORMAT_OPTION + FORMAT_ASCII_TREE}, \
	{"plot", required_argument, NULL, FORMAT_OPTION + FORMAT_PLOT}, \
	{"replay", no_argument, NULL, FORMAT_OPTION + FORMAT_REPLAY}
/* clang-format on */

/* Is the format always compressed by gzip, whatever the file name? */
bool format_is_gzip(enum format f);

/* Does the format need the live blocks, not only their sums? */
bool format_wants_blocks(const struct format_request *r);

/* Does a recording with @info contain the requested data?  Return: 0, or -EINVAL with @err
 * (MP_EXIT_USAGE). */
int format_suits(const struct format_request *r, const struct mp_info *info, struct mp_err *err);

/* Does the output itself say that numbers are estimates if the recording is a sample? */
bool format_says_estimated(const struct format_request *r);

/* Writes the report.  Return: 0, or a negative errno with @err filled. */
int format_write(struct model *m, const struct format_request *r, FILE *out, struct mp_err *err);

#endif
