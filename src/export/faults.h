/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports of a recording of page faults: which stacks touched memory that then became resident.
 * Counts the faults that the kernel completed, each with the page that became resident.
 * doc/page-faults.md explains how that differs from the growth of the resident set.
 */
#ifndef EXPORT_FAULTS_H
#define EXPORT_FAULTS_H

#include <stdio.h>
#include "export/text/text.h"
#include "export/lists/view.h"
#include "lib/err.h"

struct model;

/* Writes a summary as text. */
void faults_text(struct model *m, const struct text_options *o, FILE *out);
/* Writes everything, as in doc/page-faults.schema.json.  Return: 0 or a negative errno. */
int faults_json(struct model *m, enum group_by by, FILE *out);
/* Lists all faults, sorted and cut by @v (its keys are in export/lists/allocations.h).  @total: as for
 * allocations_write().  Return: 0, or a negative errno with @err. */
int faults_list(struct model *m, const struct view *v, FILE *out, uint64_t *total,
		struct mp_err *err);

#endif
