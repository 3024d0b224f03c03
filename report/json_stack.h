/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks in JSON: a list of frames; or "backtrace" (frames outermost first, the allocator last),
 * "complete" and "by_frame_pointers". */
#ifndef REPORT_JSON_STACK_H
#define REPORT_JSON_STACK_H

#include "report/json_gen.h"
#include "report/model.h"

/* @id: of the stack; one that the recording does not have is empty.  A value: the list only. */
void json_frames(yajl_gen g, struct model *m, uint32_t id);
/* The list, whether it is complete and whether it relies on frame pointers, with their keys. */
void json_backtrace(yajl_gen g, struct model *m, uint32_t id);
/* KEY_relative, its share of the runtime (KEY_relative_p), and KEY: Unix time. */
void json_moment(yajl_gen g, const struct model *m, const char *key, uint64_t ns);

#endif
