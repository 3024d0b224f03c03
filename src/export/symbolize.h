/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies a recording, either with symbols from the files of this machine or without names. */
#ifndef EXPORT_SYMBOLIZE_H
#define EXPORT_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

enum anonymize {
	ANONYMIZE_NONE,
	ANONYMIZE_PARTIAL, /* paths without folders, the command line without arguments */
	ANONYMIZE_FULL,	   /* also no other names, and no build ids */
};

struct debuginfod;
struct symbolize_options {
	const char *const *debug_dirs; /* see symbols_new() */
	struct debuginfod *servers;    /* see symbols_ask() */
	enum anonymize anonymize;
};

struct symbolize_result {
	uint64_t addresses;		    /* distinct addresses in the stacks */
	uint64_t before, after;		    /* number of them with a function, */
	uint64_t lines_before, lines_after; /* and with a line */
	uint64_t binaries;		    /* carried by the recording, and used */
	bool truncated;			    /* recording and copy are truncated */
};

/**
 * recording_symbolize() - copy a recording, with symbols resolved
 *
 * Recorded symbols are kept unless this machine's are better.  A file is used only if its build id
 * is the recorded one; if this machine has none, the binary carried by the recording is used, or
 * the servers' debug file alone.  The copy carries no binaries.
 * Return: 0, or a negative errno with @err filled.
 */
int recording_symbolize(const char *from, const char *to, const struct symbolize_options *o,
			struct symbolize_result *result, struct mp_err *err);

#endif
