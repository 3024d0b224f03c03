/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary of a recording of allocations as text: its sums, and the stacks with the highest
 * costs. */
#ifndef EXPORT_TEXT_TEXT_SUMMARY_H
#define EXPORT_TEXT_TEXT_SUMMARY_H

#include <stdio.h>
#include "export/text/text.h"

struct model;

void text_summary(struct model *m, const struct text_options *o, FILE *out);

#endif
