/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --debuginfod: which servers are asked for debug information, and what came of it. */
#ifndef CMD_SERVERS_H
#define CMD_SERVERS_H

#include <stdio.h>
#include "lib/debuginfod_urls.h"
#include "unwind/symbols/debuginfod.h"

/* The options --debuginfod and --no-debuginfod, for --help. */
/* clang-format off */
#define SERVERS_HELP \
	"      --debuginfod     fetch debug information that this machine does not have from the servers\n" \
	"                       in DEBUGINFOD_URLS, else from debuginfod.elfutils.org; always on if\n" \
	"                       that variable is set\n" \
	"      --no-debuginfod  ask no server\n"
/* clang-format on */

/* Return: the servers to ask, to be freed by debuginfod_free(), or NULL: none, or out of memory.
 * Shows the progress of downloads on a terminal. */
struct debuginfod *servers_new(enum debuginfod_ask ask);
/* Prints what was found, to @out, and what failed, to stderr.  @d: NULL: prints nothing. */
void servers_report(const struct debuginfod *d, FILE *out);

#endif
