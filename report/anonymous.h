/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names that say nothing: "fn_1", "src_1", "lib_1"; the same name is always replaced alike. */
#ifndef REPORT_ANONYMOUS_H
#define REPORT_ANONYMOUS_H

#include "formats/file.h"
#include "report/symbolize.h"

struct anonymous;

/* Return: NULL when out of memory. */
struct anonymous *anonymous_new(enum anonymize how);
void anonymous_free(struct anonymous *a);

/* Replaces what names something in @info. */
void anonymous_info(struct anonymous *a, struct mp_info *info);
/* The same for an item; texts are valid until the next call.  Symbols are changed in @symbols,
 * which has room for them.  Return: 0 or -ENOMEM. */
int anonymous_item(struct anonymous *a, struct mpf_item *it, struct mp_symbol *symbols);

#endif
