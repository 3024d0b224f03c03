/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON of memprof heap --retained: doc/heap.schema.json. */
#include <errno.h>
#include "cmd/heap/heap_retained.h"
#include "lib/json_gen.h"

static void write_container(yajl_gen g, const struct line_container *c)
{
	json_name(g, "container");
	if (!c->name) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	json_text(g, "type", c->name);
	json_text(g, "type_source", name_source_text(c->source));
	json_address(g, c->is.addr);
	json_number(g, "elements", c->is.elements);
	json_number(g, "blocks", c->is.blocks);
	json_number(g, "bytes", c->is.bytes);
	json_number(g, "unused_bytes", c->is.unused);
	json_number(g, "buckets", c->is.buckets);
	yajl_gen_map_close(g);
}

static void write_site(yajl_gen g, const struct heap_site *site)
{
	json_name(g, "allocated_at");
	if (!site) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	json_text(g, "function", site->at->function);
	json_text(g, "library", site->at->library);
	json_text(g, "source", site->at->source);
	json_number(g, "line", site->at->line);
	json_number(g, "bytes", site->bytes);
	json_number(g, "known_bytes", site->known);
	yajl_gen_map_close(g);
}

static void write_line(yajl_gen g, const struct retained_line *l, const struct heap_sites *sites)
{
	yajl_gen_map_open(g);
	json_text(g, "kind", retained_kind_name(l->kind, l->holder));
	json_text(g, "name", l->name);
	json_text(g, "module", l->module);
	json_text(g, "source", l->source);
	json_number(g, "line", l->line);
	json_number(g, "thread", (uint64_t)l->tid);
	json_address(g, l->addr);
	json_number(g, "size", l->size);
	json_number(g, "count", l->count);
	json_number(g, "own_bytes", l->own);
	json_number(g, "retained_bytes", l->bytes);
	json_number(g, "retained_blocks", l->blocks);
	json_number(g, "exact_bytes", l->exact);
	json_number(g, "roots", l->roots);
	json_text(g, "type", l->type);
	json_text(g, "type_source", name_source_text(l->source_of));
	write_container(g, &l->container);
	write_site(g, heap_sites_of(sites, l->number));
	json_name(g, "root_names");
	yajl_gen_array_open(g);
	for (int i = 0; i < RETAINED_ROOTS && l->root[i]; i++)
		json_string(g, l->root[i]);
	yajl_gen_array_close(g);
	json_name(g, "children");
	yajl_gen_array_open(g);
	/* As deep as the report, at most RETAINED_MAX_DEPTH. */
	for (const struct retained_line *c = l->child; c; c = c->next)
		write_line(g, c, sites);
	yajl_gen_array_close(g);
	yajl_gen_map_close(g);
}

static void write_recording(yajl_gen g, const struct heap_sites *s)
{
	json_name(g, "recording");
	if (!s || !s->of) {
		yajl_gen_null(g);
		return;
	}
	yajl_gen_map_open(g);
	recording_of_json(&s->rec, g);
	json_number(g, "known_count", s->known_count);
	json_number(g, "known_bytes", s->known_bytes);
	json_number(g, "unknown_count", s->unknown_count);
	json_number(g, "unknown_bytes", s->unknown_bytes);
	yajl_gen_map_close(g);
}

int retained_json(const struct retained *r, const struct retained_about *about, FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_map_open(g);
	json_text(g, "memprof_version", MEMPROF_VERSION);
	json_number(g, "pid", (uint64_t)about->pid);
	json_text(g, "name", about->name);
	json_text(g, "mode", about->mode);
	json_number(g, "pause_ns", about->pause_ns);
	json_boolean(g, "exact", about->census->exact);
	json_text(g, "unknown_allocator",
		  about->census->unknown[0] ? about->census->unknown : NULL);
	json_amount(g, "live", r->live_blocks, r->live_bytes);
	json_amount(g, "unreachable", r->unreached_blocks, r->unreached_bytes);
	json_number(g, "unreadable_bytes", r->unreadable_bytes);
	json_number(g, "edges", r->edges);
	json_number(g, "roots", r->roots);
	json_number(g, "threads", r->threads);
	json_number(g, "threads_unwound", r->unwound);
	json_number(g, "scan_ns", r->scan_ns);
	json_number(g, "names_ns", r->names_ns);
	json_number(g, "dominators_ns", r->dominators_ns);
	json_number(g, "graph_wall_ns", r->graph_wall_ns);
	json_number(g, "lines_ns", r->lines_ns);
	write_recording(g, about->sites);
	json_name(g, "notes");
	yajl_gen_array_open(g);
	vec_for_each (&r->notes.list, note)
		json_string(g, *note);
	yajl_gen_array_close(g);
	json_name(g, "path");
	yajl_gen_array_open(g);
	vec_for_each (&r->path, l)
		write_line(g, *l, about->sites);
	yajl_gen_array_close(g);
	json_name(g, "retained");
	write_line(g, r->all, about->sites);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
