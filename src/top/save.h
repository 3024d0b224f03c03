/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TOP_SAVE_H
#define TOP_SAVE_H

#include "lib/err.h"

struct model;

/* Writes the present look as a report: as JSON if @path ends in .json (before .gz or .zst), else as
 * text.  Does not replace a recording.  Return: 0 or a negative errno with @err. */
int save_report(struct model *m, const char *path, struct mp_err *err);

#endif
