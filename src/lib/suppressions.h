/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Suppression files, in LeakSanitizer's format: lines of "leak:pattern", in which '*' matches
 * anything and '^' and '$' anchor; '#' starts a comment.
 */
#ifndef LIB_SUPPRESSIONS_H
#define LIB_SUPPRESSIONS_H

#include <stdbool.h>
#include "lib/err.h"
#include "lib/vec.h"

struct suppressions {
	VEC(char *) pattern;
};

/* Adds the patterns of @file to @s, which is to be freed by suppressions_free() also on failure.
 * Return: 0, or a negative errno with @err (MP_EXIT_USAGE), which names the file and line. */
int suppressions_read(struct suppressions *s, const char *file, struct mp_err *err);
void suppressions_free(struct suppressions *s);

/* Does @text, the name of a function, file or library, match @pattern? */
bool suppression_matches(const char *pattern, const char *text);
/* Does @text match any of the patterns?  NULL matches none. */
bool suppressions_match(const struct suppressions *s, const char *text);

#endif
