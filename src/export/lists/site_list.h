/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists the places (model/places.h) with the highest cost, as text or as JSON. */
#ifndef EXPORT_LISTS_SITE_LIST_H
#define EXPORT_LISTS_SITE_LIST_H

#include <stdbool.h>
#include <stdio.h>
#include "export/text/text.h"
#include "lib/json_gen.h"
#include "model/places.h"

#define ERROR_TEXT 40
/* Formats " +- 1.2 MiB", the standard error of a sum of bytes (@bytes) or of a number, into @buf
 * (ERROR_TEXT bytes); "" if nothing is estimated.  Return: @buf. */
const char *text_error(double variance, bool bytes, char *buf);

/* Writes an empty line, @title, and the first @top places by @cost, each with at most @frames lines
 * of the heaviest of its stacks; nothing if there is none. */
void site_list(struct model *m, const struct text_options *o, enum cost cost, const char *title,
	       uint32_t top, uint32_t frames, FILE *out);

/* Writes the keys that say where a place is. */
void site_where(yajl_gen g, const struct place *p, enum group_by by);

/* Writes "group_by" and "sites".  @sums: writes the sums of a place. */
void sites_json(yajl_gen g, const struct model *m, const struct places *p,
		void (*sums)(yajl_gen g, const struct model *m, const struct group *of));

#endif
