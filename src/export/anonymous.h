/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Replaces names by meaningless ones: "fn_1", "src_1", "lib_1".  Equal names get equal
 * replacements. */
#ifndef EXPORT_ANONYMOUS_H
#define EXPORT_ANONYMOUS_H

#include "export/symbolize.h"
#include "formats/file.h"

struct anonymous;

/* Return: NULL when out of memory. */
struct anonymous *anonymous_new(enum anonymize how);
void anonymous_free(struct anonymous *a);

/* Replaces the names in @info. */
void anonymous_info(struct anonymous *a, struct mp_info *info);
/* Replaces the names in an item.  Texts are valid until the next call.  @symbols: receives the
 * changed symbols, must have room for those of the item.  Return: 0 or -ENOMEM. */
int anonymous_item(struct anonymous *a, struct mpf_item *it, struct mp_symbol *symbols);

#endif
