/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes what was joined with leaks (join/leaks_join.h) as JSON values for leaks_json(). */
#ifndef CMD_HEAP_LEAKS_JOIN_JSON_H
#define CMD_HEAP_LEAKS_JOIN_JSON_H

#include <stdint.h>
#include <yajl/yajl_gen.h>

/* Writes the recording's part of the report.  @join: struct leak_join *. */
void join_json(void *join, yajl_gen g);
/* Writes a stack of the recording.  @join: struct leak_join *. */
void join_json_stack(void *join, yajl_gen g, uint32_t stack);

#endif
