/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks in answers, as bytehound writes them: frames outermost first, the allocator last. */
#ifndef SERVER_ANSWERS_FRAMES_H
#define SERVER_ANSWERS_FRAMES_H

#include <stdint.h>
#include "lib/json_gen.h"
#include "model/names/frames.h"
#include "server/endpoint.h"

/* Prepares a->counts.  To be called before the others.  Return: 0, or -ENOMEM with @err. */
int frames_begin(struct answer *a, struct mp_err *err);
void frame_counts_free(struct frame_counts *c);

/* Writes the frames of stack @id as an array, a value.  Reads "strip_template_args" of the call. */
void frames_array(struct answer *a, yajl_gen g, uint32_t id);
/* Writes the keys backtrace_id and backtrace. */
void frames_backtrace(struct answer *a, yajl_gen g, uint32_t id);
/* Writes one frame as an object, a value. */
void frames_one(struct answer *a, yajl_gen g, const struct frame *f);

#endif
