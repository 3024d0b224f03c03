/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes heaptrack's interpreted text format, file version 3, for heaptrack_print and
 * heaptrack_gui: every allocation and free in order, requested sizes, time in milliseconds, RSS.
 * The allocator's own frame is left out, as in heaptrack.  The definition of a temporary allocation
 * differs from memprof's: doc/formats.md.
 */
#ifndef EXPORT_HEAPTRACK_H
#define EXPORT_HEAPTRACK_H

#include <stdio.h>
#include "lib/err.h"

struct model;

/* Reads the recording again.  Return: 0, or a negative errno with @err filled. */
int heaptrack_write(struct model *m, FILE *out, struct mp_err *err);

#endif
