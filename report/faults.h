/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports of a recording of page faults: which stacks touched memory that then became resident.
 * Counted are the faults that the kernel finished, each with the page it left behind;
 * doc/page-faults.md says how that differs from the growth of the resident set.
 */
#ifndef REPORT_FAULTS_H
#define REPORT_FAULTS_H

#include <stdio.h>
#include "report/model.h"
#include "report/text.h"
#include "report/view.h"

/* A summary for people. */
void faults_text(struct model *m, const struct text_options *o, FILE *out);
/* Everything, by doc/page-faults.schema.json.  Return: 0 or a negative errno. */
int faults_json(struct model *m, FILE *out);
/* Every fault, sorted and cut by @v (report/allocations.h has the keys).  Return: 0, or a negative
 * errno with @err. */
int faults_list(struct model *m, const struct view *v, FILE *out, struct mp_err *err);

#endif
