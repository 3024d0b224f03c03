/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stacks in JSON: a list of frames; or "backtrace" (frames outermost first, the allocator last),
 * "user_frame", "complete" and "by_frame_pointers". */
#ifndef EXPORT_JSON_STACK_H
#define EXPORT_JSON_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/json_gen.h"

struct model;

/* The stacks that a list of single events refers to, each of which is written once after the list. */
struct json_stacks {
	bool *used; /* by stack id */
	uint32_t n;
};

/* Return: 0 with @s empty, to be freed by json_stacks_free(), or -ENOMEM. */
int json_stacks_init(struct json_stacks *s, const struct model *m);
void json_stacks_free(struct json_stacks *s);
/* Writes "backtrace_id", and remembers the stack. */
void json_stacks_refer(struct json_stacks *s, yajl_gen g, uint32_t id);
/* Writes "stacks": for each remembered stack its id and what json_backtrace() writes. */
void json_stacks_write(const struct json_stacks *s, yajl_gen g, struct model *m);

/* Writes the list as a value.  @id: of the stack; an empty list if the recording does not have it.
 */
void json_frames(yajl_gen g, struct model *m, uint32_t id);
/* Writes keys and values: the list, the index of the user's own frame, whether it is complete, and whether it relies on frame
 * pointers. */
void json_backtrace(yajl_gen g, struct model *m, uint32_t id);
/* Writes KEY_relative, its share of the runtime (KEY_relative_p), and KEY: Unix time. */
void json_moment(yajl_gen g, const struct model *m, const char *key, uint64_t ns);

#endif
