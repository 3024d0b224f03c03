/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Callers and callees of functions, as text. */
#ifndef EXPORT_TEXT_PEEK_H
#define EXPORT_TEXT_PEEK_H

#include <stdint.h>
#include <stdio.h>
#include "lib/err.h"
#include "model/group.h"

struct model;

/**
 * peek_write() - list what functions cost, by caller and by callee
 * @pattern: a regular expression (model/filter/pattern.h); a function is listed if it is in its name, as
 * it is shown or as it is recorded
 * @top: most functions
 *
 * The functions are those of the stacks as model/names/shown.h shows them.  A stack counts once for a
 * function: for the caller of its outermost frame and the callee of its innermost one.  So the
 * callers add up to the function's cost, and so do the callees.
 * Return: 0, or a negative errno with @err filled: -ENOENT: no function matches.
 */
int peek_write(struct model *m, const char *pattern, enum cost cost, uint32_t top, FILE *out,
	       struct mp_err *err);

#endif
