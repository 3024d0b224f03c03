/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes speedscope's JSON (its file-format-schema.json): a sampled profile for each cost, with a
 * weight for each stack. */
#ifndef EXPORT_SPEEDSCOPE_H
#define EXPORT_SPEEDSCOPE_H

#include <stdio.h>
#include "model/group.h"

struct model;

/* @shown: the profile that is shown first.  Return: 0 or a negative errno. */
int speedscope_write(struct model *m, enum cost shown, FILE *out);

#endif
