/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The lists of `memprof report --view`: their options, and the writer of each. */
#ifndef CMD_VIEWS_H
#define CMD_VIEWS_H

#include <getopt.h>
#include <stdio.h>
#include "export/lists/view.h"
#include "formats/file.h"
#include "lib/err.h"

struct model;

enum view_name {
	VIEW_NONE,
	VIEW_ALLOCATIONS,
	VIEW_GROUPS,
	VIEW_LIBRARIES,
	VIEW_THREADS,
	VIEW_SIZES,
	VIEW_TIMELINE,
	VIEW_MAPS,
	VIEW_FAULTS,
};

struct view_request {
	enum view_name name;
	struct view view;
	const char *sort_by; /* NULL: the list's default */
	bool ordered, counted, skipped;
};

/* The value that getopt_long() returns for the first option. */
#define VIEW_OPTION 0x3000
/* clang-format off */
#define VIEW_OPTIONS \
	{"view", required_argument, NULL, VIEW_OPTION}, \
	{"sort-by", required_argument, NULL, VIEW_OPTION + 1}, \
	{"order", required_argument, NULL, VIEW_OPTION + 2}, \
	{"skip", required_argument, NULL, VIEW_OPTION + 3}, \
	{"count", required_argument, NULL, VIEW_OPTION + 4}
/* clang-format on */

/* Handles an option of VIEW_OPTIONS.  Return: 0, or the exit status after it printed an error. */
int view_option(struct view_request *v, int opt, const char *value);
/* Checks the options when all are known; @json: the output is JSON.  Return: as view_option(). */
int view_settle(struct view_request *v, bool json);

/* Does a recording with @info contain the requested data?  Return: 0, or -EINVAL with @err
 * (MP_EXIT_USAGE). */
int view_suits(const struct view_request *v, const struct mp_info *info, struct mp_err *err);
/* Writes the list.  Return: 0, or a negative errno with @err filled. */
int view_write(struct model *m, const struct view_request *v, FILE *out, struct mp_err *err);

#endif
