/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/timeline.h"

#include <errno.h>
#include "lib/vec.h"
#include "lib/wide.h"
#include "model/model.h"

static uint64_t per_second(uint64_t n, uint64_t ns)
{
	return ns ? wide_mul_div(n, 1000000000u, ns) : 0;
}

static void write_points(yajl_gen g, const struct model *m)
{
	uint64_t before = 0;

	json_name(g, "timeline");
	yajl_gen_array_open(g);
	vec_for_each (&m->sums.timeline, p) {
		uint64_t ns = p->time_ns - before;

		before = p->time_ns;
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", p->time_ns);
		json_number(g, "live_bytes", p->live_bytes);
		json_number(g, "live_count", p->live_blocks);
		json_number(g, "peak_bytes", p->peak_bytes);
		json_number(g, "peak_count", p->peak_blocks);
		json_number(g, "allocations", p->allocations);
		json_number(g, "frees", p->frees);
		json_number(g, "allocated_bytes", p->allocated_bytes);
		json_number(g, "freed_bytes", p->freed_bytes);
		json_number(g, "allocations_per_second", per_second(p->allocations, ns));
		json_number(g, "frees_per_second", per_second(p->frees, ns));
		json_number(g, "allocated_bytes_per_second", per_second(p->allocated_bytes, ns));
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

void timeline_samples(yajl_gen g, const struct model *m)
{
	json_name(g, "samples");
	yajl_gen_array_open(g);
	vec_for_each (&m->facts.samples, s) {
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", s->time_ns);
		json_number(g, "rss", s->rss);
		json_number(g, "anonymous", s->anonymous);
		json_number(g, "file", s->file);
		json_number(g, "swap", s->swap);
		json_number(g, "address_space", s->address_space);
		json_number(g, "session_rss", s->session_rss);
		json_number(g, "session_anonymous", s->session_anonymous);
		json_number(g, "session_address_space", s->session_address_space);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

void timeline_markers(yajl_gen g, const struct model *m)
{
	json_name(g, "markers");
	yajl_gen_array_open(g);
	vec_for_each (&m->facts.marks, mark) {
		yajl_gen_map_open(g);
		json_timeval(g, "timestamp_relative", mark->time_ns);
		json_text(g, "name", mark->name);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

void timeline_looks(yajl_gen g, const struct model *m)
{
	timeline_samples(g, m);
	timeline_markers(g, m);
}

void timeline_members(yajl_gen g, const struct model *m)
{
	write_points(g, m);
	timeline_looks(g, m);
}

int timeline_write(const struct model *m, FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	timeline_members(g, m);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ferror(out) ? -EIO : 0;
}
