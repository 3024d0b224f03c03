/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Excludes known leaks: suppression files and former reports. */
#ifndef LEAKS_TYPES_KNOWN_H
#define LEAKS_TYPES_KNOWN_H

#include <stdbool.h>
#include "leaks/clusters.h"
#include "lib/err.h"

/* Access to the names of a stack's frames. */
struct stack_names {
	/* Return: does @matches(@pattern, NAME) hold for a function or file of @stack? */
	bool (*any)(void *ctx, uint32_t stack, bool (*matches)(const char *, const char *),
		    const char *pattern);
	void *ctx;
};
/* Marks clusters whose type, owner or stack (@names; NULL: not known) matches a line of a
 * suppression file.  Its format is LeakSanitizer's: "leak:pattern"; '*' matches anything, '^' and
 * '$' anchor, '#' starts a comment.  Return: 0 or -errno with @err. */
int clusters_suppress(struct clusters *c, const char *file, const struct stack_names *names,
		      struct mp_err *err);
/* Subtracts the leaks of a former report (its JSON), first from clusters without a stack: blocks
 * that are in a recording are younger.  Return: 0 or -errno with @err. */
int clusters_baseline(struct clusters *c, const char *file, struct mp_err *err);

#endif
