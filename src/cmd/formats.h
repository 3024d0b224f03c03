/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output formats of `memprof report`: their options, and the writer of each. */
#ifndef CMD_FORMATS_H
#define CMD_FORMATS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "export/source_file.h"
#include "formats/file.h"
#include "lib/err.h"
#include "model/places.h"
#include "model/shown.h"

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
	FORMAT_PEEK,
	FORMAT_ANNOTATE,
	NFORMATS,
};

#define TOP_USUAL UINT32_MAX

struct format_request {
	enum format format;
	bool leaks, bottom_up, verbose;
	int cost;	      /* enum cost; -1: not given */
	uint32_t top;	      /* TOP_USUAL: not given */
	enum group_by by;     /* what a site is */
	double least;	      /* percent */
	const char *peek;     /* FORMAT_PEEK: a regular expression */
	const char *annotate; /* FORMAT_ANNOTATE: a source file */
	struct source_prefixes prefixes;
};

/* Options that say how stacks are shown (model/shown.h).  Handled by show_option(). */
#define SHOW_OPTION 0x4000
/* clang-format off */
#define SHOW_OPTIONS \
	{"full-stacks", no_argument, NULL, SHOW_OPTION}, \
	{"frames", required_argument, NULL, SHOW_OPTION + 1}, \
	{"lines", no_argument, NULL, SHOW_OPTION + 2}
/* clang-format on */

/* Return: 0, or the exit status after it printed an error.  @command: for the message. */
int show_option(struct shown *s, int opt, const char *value, const char *command);

/* The value that getopt_long() returns for the option of format 0. */
#define FORMAT_OPTION 0x1000
/* clang-format off */
#define FORMAT_OPTIONS \
	{"json", optional_argument, NULL, FORMAT_OPTION + FORMAT_JSON}, \
	{"tree", optional_argument, NULL, FORMAT_OPTION + FORMAT_TREE}, \
	{"collapsed", optional_argument, NULL, FORMAT_OPTION + FORMAT_COLLAPSED}, \
	{"flamegraph", required_argument, NULL, FORMAT_OPTION + FORMAT_FLAMEGRAPH}, \
	{"icicle", required_argument, NULL, FORMAT_OPTION + FORMAT_ICICLE}, \
	{"heaptrack", optional_argument, NULL, FORMAT_OPTION + FORMAT_HEAPTRACK}, \
	{"pprof", optional_argument, NULL, FORMAT_OPTION + FORMAT_PPROF}, \
	{"speedscope", optional_argument, NULL, FORMAT_OPTION + FORMAT_SPEEDSCOPE}, \
	{"csv", optional_argument, NULL, FORMAT_OPTION + FORMAT_CSV}, \
	{"ascii-tree", optional_argument, NULL, FORMAT_OPTION + FORMAT_ASCII_TREE}, \
	{"plot", required_argument, NULL, FORMAT_OPTION + FORMAT_PLOT}, \
	{"replay", optional_argument, NULL, FORMAT_OPTION + FORMAT_REPLAY}, \
	{"peek", required_argument, NULL, FORMAT_OPTION + FORMAT_PEEK}, \
	{"annotate", required_argument, NULL, FORMAT_OPTION + FORMAT_ANNOTATE}
/* clang-format on */

/* Is the format always compressed by gzip, whatever the file name? */
bool format_is_gzip(enum format f);

/* Does the format need the live blocks, not only their sums? */
bool format_wants_blocks(const struct format_request *r);

/* Does a recording with @info contain the requested data?  Return: 0, or -EINVAL with @err
 * (MP_EXIT_USAGE). */
int format_suits(const struct format_request *r, const struct mp_info *info, struct mp_err *err);

/* Does the output itself say that numbers are estimates if the recording is a sample? */
bool format_says_estimated(enum format f);

/* Does the output show single blocks or their order, which are not known of culled ones? */
bool format_needs_history(enum format f);

/* Does the output itself say, for people, that the recording is cut off? */
bool format_says_truncated(enum format f);

/* Writes the report.  Return: 0, or a negative errno with @err filled. */
int format_write(struct model *m, const struct format_request *r, FILE *out, struct mp_err *err);

#endif
