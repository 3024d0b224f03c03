/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports which files lack symbols (model/names/symbol_gaps.h), and what gives them. */
#ifndef EXPORT_LISTS_SYMBOL_GAPS_H
#define EXPORT_LISTS_SYMBOL_GAPS_H

#include <stdio.h>
#include <yajl/yajl_gen.h>

struct model;

/* Writes at most four lines, if it matters: functions are missing in stacks of a percent of the bytes, or
 * lines of the user's own code in as many. */
void symbol_gaps_brief(const struct model *m, FILE *out);
/* Writes every file with what gives its symbols. */
void symbol_gaps_text(const struct model *m, FILE *out);
/* Writes the member missing_symbols. */
void symbol_gaps_json(yajl_gen g, const struct model *m);

#endif
