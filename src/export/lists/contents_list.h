/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists what a recording contains: its items, its events, and how long freed blocks lived. */
#ifndef EXPORT_LISTS_CONTENTS_LIST_H
#define EXPORT_LISTS_CONTENTS_LIST_H

#include <stdio.h>
#include "model/contents.h"

/* Return: 0 or a negative errno. */
int contents_json(const struct contents *c, FILE *out);
void contents_text(const struct contents *c, FILE *out);

#endif
