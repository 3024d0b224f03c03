/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports the heap over time. */
#ifndef EXPORT_LISTS_TIMELINE_H
#define EXPORT_LISTS_TIMELINE_H

#include <stdio.h>
#include "lib/json_gen.h"

struct model;

/* Writes an object with "timeline", "samples" and "markers".  Return: 0 or a negative errno. */
int timeline_write(const struct model *m, FILE *out);
/* Writes the same keys with their arrays, into an open object. */
void timeline_members(yajl_gen g, const struct model *m);

/* Writes only "samples" and "markers", which were observed from outside the process; or one of them. */
void timeline_looks(yajl_gen g, const struct model *m);
void timeline_samples(yajl_gen g, const struct model *m);
void timeline_markers(yajl_gen g, const struct model *m);

#endif
