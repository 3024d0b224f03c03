/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The interpreted text format of heaptrack, file version 3, as heaptrack_print and heaptrack_gui
 * read it: every allocation and free in order, requested sizes, time in milliseconds, RSS.  The
 * allocator's own frame is left out, as heaptrack does.  What it calls a temporary allocation is
 * not what memprof does: doc/formats.md.
 */
#ifndef REPORT_HEAPTRACK_H
#define REPORT_HEAPTRACK_H

#include <stdio.h>
#include "report/model.h"

/* Reads the recording once more.  Return: 0, or a negative errno with @err filled. */
int heaptrack_write(struct model *m, FILE *out, struct mp_err *err);

#endif
