/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LEAKS_JSON_H
#define LEAKS_JSON_H

#include <stdio.h>
#include "leaks/analysis.h"

/* Writes @a as one JSON object, as doc/leaks.md describes it.  @mode: "copy", "in-place", "core".
 * Return: 0 or -errno. */
int leaks_json(const struct analysis *a, const char *mode, FILE *out);

#endif
