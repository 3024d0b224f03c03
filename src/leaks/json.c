/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/json.h"

#include <errno.h>
#include "lib/json_gen.h"

static void write_heaps(yajl_gen g, const struct analysis *a)
{
	json_name(g, "heaps");
	yajl_gen_array_open(g);
	vec_for_each (&a->census.heaps, h) {
		yajl_gen_map_open(g);
		json_text(g, "allocator", h->allocator);
		json_text(g, "version", h->version[0] ? h->version : NULL);
		json_boolean(g, "exact", h->exact);
		json_text(g, "doubt", h->exact ? NULL : h->doubt);
		json_number(g, "arenas", h->arenas);
		json_number(g, "live_bytes", h->live_bytes);
		json_number(g, "free_bytes", h->free_bytes);
		json_number(g, "cached_bytes", h->cached_bytes);
		json_number(g, "metadata_bytes", h->metadata_bytes);
		json_name(g, "damaged");
		yajl_gen_array_open(g);
		vec_for_each (&h->damaged, d) {
			yajl_gen_map_open(g);
			json_address(g, d->addr);
			json_text(g, "what", d->what);
			yajl_gen_map_close(g);
		}
		yajl_gen_array_close(g);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_coverage(yajl_gen g, const struct analysis *a)
{
	json_name(g, "coverage");
	yajl_gen_map_open(g);
	json_number(g, "root_bytes", a->graph.root_bytes);
	json_number(g, "block_bytes", a->graph.block_bytes);
	json_number(g, "edges", a->graph.to.n);
	json_number(g, "tagged_pointers", a->graph.tagged_words);
	json_number(g, "unreadable_bytes", a->graph.unreadable_bytes);
	json_number(g, "unfrozen_bytes", a->cover.unfrozen_bytes);
	json_number(g, "skipped_bytes", a->cover.skipped_bytes);
	json_number(g, "dead_stacks", a->cover.dead_stacks);
	json_number(g, "kernel_words", a->cover.kernel_words);
	json_number(g, "signal_stacks", a->cover.signal_stacks);
	json_number(g, "threads_not_asked", a->cover.unasked);
	yajl_gen_map_close(g);
}

static void write_source(yajl_gen g, const struct leak_source *s, const struct leaks_recording *r)
{
	json_name(g, "stack");
	if (r && s->stack)
		r->stack(r->ctx, g, s->stack);
	else
		yajl_gen_null(g);
	if (!s->known) {
		json_text(g, "age_ns", NULL);
		json_text(g, "thread", NULL);
		return;
	}
	json_number(g, "age_ns", s->age_ns);
	json_boolean(g, "older", s->older);
	json_number(g, "thread", s->tid);
}

static void write_cluster(yajl_gen g, const struct cluster *c, const struct leaks_recording *r)
{
	yajl_gen_map_open(g);
	json_text(g, "type", c->type);
	json_text(g, "owner", c->owner);
	json_number(g, "size", c->size);
	json_number(g, "count", c->count);
	json_number(g, "bytes", c->bytes);
	json_number(g, "indirect_count", c->indirect_count);
	json_number(g, "indirect_bytes", c->indirect_bytes);
	json_number(g, "cycles", c->cycles);
	json_number(g, "known_count", c->known_count);
	json_boolean(g, "suppressed", c->suppressed);
	json_text(g, "preview", c->preview[0] ? c->preview : NULL);
	json_name(g, "samples");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; i < c->samples; i++)
		json_hex(g, c->sample[i]);
	yajl_gen_array_close(g);
	write_source(g, &c->source, r);
	if (c->source.known) {
		json_number(g, "youngest_age_ns", c->youngest_ns);
		json_boolean(g, "several_threads", c->several_threads);
	}
	yajl_gen_map_close(g);
}

static void write_block(yajl_gen g, const struct why_block *b)
{
	yajl_gen_map_open(g);
	json_address(g, b->addr);
	json_number(g, "size", b->size);
	json_text(g, "type", b->type);
	yajl_gen_map_close(g);
}

static void write_why(yajl_gen g, const struct why *w, const struct leaks_recording *r)
{
	json_name(g, "why");
	yajl_gen_map_open(g);
	json_address(g, w->asked);
	json_boolean(g, "is_block", w->block.size != 0);
	if (w->block.size) {
		json_boolean(g, "reachable", w->reached);
		json_text(g, "root", w->reached ? w->root_name : NULL);
		json_name(g, "path");
		yajl_gen_array_open(g);
		vec_for_each (&w->path, b)
			write_block(g, b);
		yajl_gen_array_close(g);
		json_number(g, "pointers", w->pointers);
		json_number(g, "retained_count", w->retained_count);
		json_number(g, "retained_bytes", w->retained_bytes);
		write_source(g, &w->source, r);
	}
	yajl_gen_map_close(g);
}

static void write_totals(yajl_gen g, const struct analysis *a)
{
	uint64_t direct_bytes = 0, direct = 0;

	vec_for_each (&a->clusters.list, c) {
		direct += c->count;
		direct_bytes += c->bytes;
	}
	json_amount(g, "live", a->live_count, a->live_bytes);
	json_name(g, "leaked");
	yajl_gen_map_open(g);
	json_number(g, "count", a->leaks.total_count);
	json_number(g, "bytes", a->leaks.total_bytes);
	json_number(g, "direct_count", direct);
	json_number(g, "direct_bytes", direct_bytes);
	json_number(g, "indirect_count", a->leaks.total_count - direct);
	json_number(g, "indirect_bytes", a->leaks.total_bytes - direct_bytes);
	yajl_gen_map_close(g);
	json_amount(g, "garbage", a->leaks.garbage_count, a->leaks.garbage_bytes);
}

int leaks_json(const struct analysis *a, const char *mode, const struct leaks_recording *r,
	       FILE *out)
{
	yajl_gen g = json_begin(out, true);

	if (!g)
		return -ENOMEM;
	yajl_gen_config(g, yajl_gen_indent_string, "    ");
	yajl_gen_map_open(g);
	json_text(g, "memprof_version", MEMPROF_VERSION);
	json_number(g, "pid", (uint64_t)a->pid);
	json_text(g, "name", a->name);
	json_text(g, "executable", a->exe);
	json_number(g, "threads", a->threads);
	json_text(g, "mode", mode);
	json_number(g, "pause_predicted_ns", a->plan.pause_ns);
	json_number(g, "pause_predicted_most_ns", a->plan.pause_most_ns);
	json_number(g, "pause_ns", a->pause_ns);
	json_number(g, "snapshots", a->snapshots);
	json_number(g, "longest_pause_ns", a->longest_pause_ns);
	json_number(g, "longest_processor_wait_ns", a->longest_wait_ns);
	json_number(g, "copy_ns", a->copy_ns);
	json_number(g, "walk_ns", a->walk_ns);
	json_number(g, "scan_ns", a->scan_ns);
	json_number(g, "mark_ns", a->mark_ns);
	json_boolean(g, "exact", a->census.exact);
	json_text(g, "unknown_allocator", a->census.unknown[0] ? a->census.unknown : NULL);
	write_heaps(g, a);
	write_coverage(g, a);
	write_totals(g, a);
	json_name(g, "recording");
	if (r)
		r->about(r->ctx, g);
	else
		yajl_gen_null(g);
	json_name(g, "clusters");
	yajl_gen_array_open(g);
	vec_for_each (&a->clusters.list, c)
		write_cluster(g, c, r);
	yajl_gen_array_close(g);
	if (a->why.asked)
		write_why(g, &a->why, r);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
