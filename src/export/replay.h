/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes the recording's allocations as a replay file (formats/replay.h).  Culled blocks are
 * allocated and freed with their mean size.  Alignments are not recorded: an aligned block gets the
 * alignment of its address, 64 bytes at most, or a page for valloc.
 */
#ifndef EXPORT_REPLAY_H
#define EXPORT_REPLAY_H

#include <stdio.h>
#include "lib/err.h"

struct model;

/* Reads the recording again.  Return: 0, or a negative errno with @err filled (a sample cannot be
 * replayed). */
int replay_write(struct model *m, FILE *out, struct mp_err *err);

#endif
