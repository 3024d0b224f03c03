/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The whole model as JSON; schema and names in doc/json.md.  Streams: never the text in memory. */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include "report/json_gen.h"
#include "report/model.h"

/* Members that every report has: what the recording is of. */
void json_info(yajl_gen g, const struct model *m);

/* @with_blocks: also every block that was live at the end.  Return: 0 or a negative errno. */
int json_write(struct model *m, bool with_blocks, FILE *out);

#endif
