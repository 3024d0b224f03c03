/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks in JSON: a list of frames; or "backtrace" (frames outermost first, the allocator last),
 * "complete" and "by_frame_pointers". */
#ifndef EXPORT_JSON_STACK_H
#define EXPORT_JSON_STACK_H

#include "export/json_gen.h"

struct model;

/* Writes the list as a value.  @id: of the stack; an empty list if the recording does not have it.
 */
void json_frames(yajl_gen g, struct model *m, uint32_t id);
/* Writes keys and values: the list, whether it is complete, and whether it relies on frame
 * pointers. */
void json_backtrace(yajl_gen g, struct model *m, uint32_t id);
/* Writes KEY_relative, its share of the runtime (KEY_relative_p), and KEY: Unix time. */
void json_moment(yajl_gen g, const struct model *m, const char *key, uint64_t ns);

#endif
