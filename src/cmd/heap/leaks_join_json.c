/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/heap/leaks_join_json.h"

#include "join/leaks_join.h"
#include "export/json_stack.h"
#include "lib/json_gen.h"

static void write_sum(yajl_gen g, const char *count, const char *bytes, const struct join_sum *s)
{
	json_number(g, count, s->count);
	json_number(g, bytes, s->bytes);
}

void join_json(void *join, yajl_gen g)
{
	const struct leak_join *j = join;

	yajl_gen_map_open(g);
	recording_of_json(&j->r, g);
	write_sum(g, "known_count", "known_bytes", &j->known);
	write_sum(g, "unknown_count", "unknown_bytes", &j->unknown);
	write_sum(g, "freed_count", "freed_bytes", &j->freed);
	json_number(g, "uncertain_count", j->uncertain);
	yajl_gen_map_close(g);
}

void join_json_stack(void *join, yajl_gen g, uint32_t stack)
{
	struct leak_join *j = join;

	json_frames(g, &j->r.m, stack);
}
