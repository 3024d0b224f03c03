/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports the target's mappings over time, by name. */
#ifndef EXPORT_LISTS_MAP_USAGE_H
#define EXPORT_LISTS_MAP_USAGE_H

#include <stdbool.h>
#include <stdio.h>

struct model;

/* Writes the report.  Return: 0 or a negative errno. */
int map_usage_write(const struct model *m, bool json, FILE *out);

#endif
