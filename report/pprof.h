/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes pprof's profile.proto (report/profile.proto): alloc_objects, alloc_space, inuse_objects
 * and inuse_space of each stack, with mappings, build ids, functions, lines and inlined frames.
 * The stream is not compressed here; readers expect gzip.
 */
#ifndef REPORT_PPROF_H
#define REPORT_PPROF_H

#include <stdio.h>
#include "report/model.h"

/* Writes the profile.  Return: 0 or a negative errno. */
int pprof_write(struct model *m, FILE *out);

#endif
