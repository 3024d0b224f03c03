/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary of a recording of allocations on one screen: what grew most, what is uncertain, and
 * which commands show more. */
#ifndef EXPORT_TEXT_TEXT_BRIEF_H
#define EXPORT_TEXT_TEXT_BRIEF_H

#include <stdio.h>
#include "export/text/text.h"

struct model;
struct mp_losses;

/* Writes at most 40 lines, unless @o->top asks for more sites. */
void text_brief(struct model *m, const struct text_options *o, FILE *out);

/* Writes what the losses of a recording with @events events mean, as one line without "lost".
 * @uncertain: could blocks that seem to be live have been freed? */
void text_losses(const struct mp_losses *l, uint64_t events, bool uncertain, FILE *out);

#endif
