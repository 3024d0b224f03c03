/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output formats of `memprof report` (export/format.h): their options. */
#ifndef CMD_FORMATS_H
#define CMD_FORMATS_H

#include <getopt.h>
#include "export/format.h"
#include "formats/file.h"
#include "lib/err.h"
#include "model/names/shown.h"

/* Options that say how stacks are shown (model/names/shown.h).  Handled by show_option(). */
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
	{"annotate", required_argument, NULL, FORMAT_OPTION + FORMAT_ANNOTATE}, \
	{"html", required_argument, NULL, FORMAT_OPTION + FORMAT_HTML}
/* clang-format on */

/* Does a recording with @info contain the requested data?  Return: 0, or -EINVAL with @err
 * (MP_EXIT_USAGE). */
int format_suits(const struct format_request *r, const struct mp_info *info, struct mp_err *err);

#endif
