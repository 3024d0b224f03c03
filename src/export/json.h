/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the whole model as JSON; doc/json.md has the schema and the names.  The text is streamed,
 * not built in memory. */
#ifndef EXPORT_JSON_H
#define EXPORT_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include "lib/json_gen.h"
#include "model/places.h"

struct model;

/* Writes the members that every report has, about the recording. */
void json_info(yajl_gen g, const struct model *m);

/* Writes only what a report says about the recording, and what in it is lost, estimated or uncertain. */
int json_write_doubts(const struct model *m, FILE *out);

/* Writes what a model of quick_load() (model/sums/quick.h) has: the sums of what is live, and what is lost.  Return: 0 or a
 * negative errno. */
int json_write_quick(struct model *m, FILE *out);

/* @by: of the list of sites.  @with_blocks: include every block that was live at the end.  Return: 0 or a negative errno. */
int json_write(struct model *m, enum group_by by, bool with_blocks, FILE *out);

#endif
