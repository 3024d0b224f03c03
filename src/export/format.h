/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The formats of a report on one recording: what each needs and says, and one call that writes any of
 * them.  The command line and the server share this table. */
#ifndef EXPORT_FORMAT_H
#define EXPORT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "export/source_file.h"
#include "lib/err.h"
#include "model/group.h"
#include "model/places.h"

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
	FORMAT_PEEK,
	FORMAT_ANNOTATE,
	FORMAT_HTML,
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

struct format_facts {
	bool gzip;	/* always compressed by gzip, whatever the file name */
	bool of_faults; /* also for a recording of page faults */
	bool of_live;	/* also for a recording of the live heap (--live-only) */
	bool history;	/* shows single blocks or their order, which are not known of culled ones */
	bool says_estimated; /* says itself that numbers are estimates */
	bool says_truncated; /* says itself, for people, that the recording is cut off */
};

const struct format_facts *format_facts(enum format f);

/* Does the format need the live blocks, not only their sums? */
bool format_wants_blocks(const struct format_request *r);

/* Writes the report.  Return: 0, or a negative errno with @err filled. */
int format_write(struct model *m, const struct format_request *r, FILE *out, struct mp_err *err);

#endif
