/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the heap went over time. */
#ifndef REPORT_TIMELINE_H
#define REPORT_TIMELINE_H

#include <stdio.h>
#include "report/json_gen.h"
#include "report/model.h"

/* As an object of its own: "timeline", "samples", "markers".  Return: 0 or a negative errno. */
int timeline_write(const struct model *m, FILE *out);
/* The same keys and their arrays, into an object that is open. */
void timeline_members(yajl_gen g, const struct model *m);

/* Of these only what was seen from outside: "samples" and "markers". */
void timeline_looks(yajl_gen g, const struct model *m);

/* A plot as SVG: live bytes and resident memory, live blocks, rates.  Return: 0 or a negative
 * errno. */
int plot_write(const struct model *m, FILE *out);

#endif
