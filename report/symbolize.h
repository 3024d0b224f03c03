/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A copy of a recording with the symbols that the files of this machine know, or without names. */
#ifndef REPORT_SYMBOLIZE_H
#define REPORT_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"

enum anonymize {
	ANONYMIZE_NONE,
	ANONYMIZE_PARTIAL, /* paths lose their folders, the command line its arguments */
	ANONYMIZE_FULL, /* also no name of a function, file, library, thread, mark; no build id */
};

struct symbolize_result {
	uint64_t addresses;		    /* different ones in the stacks */
	uint64_t before, after;		    /* of them with a function; */
	uint64_t lines_before, lines_after; /* with a line */
	uint64_t binaries;		    /* that the recording carries and were of use */
	bool truncated;			    /* the recording was cut off, and so is the copy */
};

/**
 * recording_symbolize() - copy a recording, symbols resolved
 * @debug_dirs: as of symbols_new()
 *
 * Symbols that the recording has are kept where this machine does not know more.  A file is used
 * only if its build id is the recorded one; where this machine has none, the binary that the
 * recording carries is.  The copy carries none.  Return: 0, or a negative errno with @err filled.
 */
int recording_symbolize(const char *from, const char *to, const char *const *debug_dirs,
			enum anonymize anonymize, struct symbolize_result *result,
			struct mp_err *err);

#endif
