/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Regular expressions (PCRE2), searched unanchored, with a limit on the cost of one search. */
#ifndef MODEL_FILTER_PATTERN_H
#define MODEL_FILTER_PATTERN_H

#include "lib/err.h"

struct pattern;

/**
 * pattern_new() - compile @text
 * @name: the filter's name, for messages
 *
 * Return: 0, -EINVAL (not a pattern) or -ENOMEM, with @err filled.
 */
int pattern_new(const char *name, const char *text, struct pattern **p, struct mp_err *err);
void pattern_free(struct pattern *p);

/* Return: 1 found; 0 not found; or a negative errno with @err filled: the search exceeded the
 * limit. */
int pattern_find(const struct pattern *p, const char *subject, struct mp_err *err);

#endif
