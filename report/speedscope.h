/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* speedscope's JSON (its file-format-schema.json): one sampled profile for each cost, one weight
 * for each stack. */
#ifndef REPORT_SPEEDSCOPE_H
#define REPORT_SPEEDSCOPE_H

#include <stdio.h>
#include "report/model.h"

/* @shown: the profile that is opened first.  Return: 0 or a negative errno. */
int speedscope_write(struct model *m, enum cost shown, FILE *out);

#endif
