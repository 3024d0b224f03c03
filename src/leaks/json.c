/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>
#include "lib/utf8.h"

static void print(void *ctx, const char *text, size_t n)
{
	fwrite(text, 1, n, ctx);
}

static void name(yajl_gen g, const char *s)
{
	yajl_gen_string(g, (const unsigned char *)s, strlen(s));
}

static void text(yajl_gen g, const char *key, const char *v)
{
	char *copy = v ? strdup(v) : NULL;

	name(g, key);
	if (copy) {
		utf8_clean(copy);
		name(g, copy);
	} else {
		yajl_gen_null(g);
	}
	free(copy);
}

static void number(yajl_gen g, const char *key, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);

	name(g, key);
	yajl_gen_number(g, digits, (size_t)n);
}

static void boolean(yajl_gen g, const char *key, bool v)
{
	name(g, key);
	yajl_gen_bool(g, v);
}

static void hex(char to[24], uint64_t v)
{
	snprintf(to, 24, "%016" PRIX64, v);
}

static void address(yajl_gen g, uint64_t v)
{
	char digits[24];

	number(g, "address", v);
	hex(digits, v);
	text(g, "address_s", digits);
}

static void write_heaps(yajl_gen g, const struct analysis *a)
{
	name(g, "heaps");
	yajl_gen_array_open(g);
	vec_for_each (&a->census.heaps, h) {
		yajl_gen_map_open(g);
		text(g, "allocator", h->allocator);
		text(g, "version", h->version[0] ? h->version : NULL);
		boolean(g, "exact", h->exact);
		text(g, "doubt", h->exact ? NULL : h->doubt);
		number(g, "arenas", h->arenas);
		number(g, "live_bytes", h->live_bytes);
		number(g, "free_bytes", h->free_bytes);
		number(g, "cached_bytes", h->cached_bytes);
		number(g, "metadata_bytes", h->metadata_bytes);
		name(g, "damaged");
		yajl_gen_array_open(g);
		vec_for_each (&h->damaged, d) {
			yajl_gen_map_open(g);
			address(g, d->addr);
			text(g, "what", d->what);
			yajl_gen_map_close(g);
		}
		yajl_gen_array_close(g);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_coverage(yajl_gen g, const struct analysis *a)
{
	name(g, "coverage");
	yajl_gen_map_open(g);
	number(g, "root_bytes", a->graph.root_bytes);
	number(g, "block_bytes", a->graph.block_bytes);
	number(g, "edges", a->graph.to.n);
	number(g, "tagged_pointers", a->graph.tagged_words);
	number(g, "unreadable_bytes", a->graph.unreadable_bytes);
	number(g, "unfrozen_bytes", a->cover.unfrozen_bytes);
	number(g, "skipped_bytes", a->cover.skipped_bytes);
	number(g, "dead_stacks", a->cover.dead_stacks);
	number(g, "kernel_words", a->cover.kernel_words);
	yajl_gen_map_close(g);
}

static void write_source(yajl_gen g, const struct leak_source *s, const struct leaks_recording *r)
{
	name(g, "stack");
	if (r && s->stack)
		r->stack(r->ctx, g, s->stack);
	else
		yajl_gen_null(g);
	if (!s->known) {
		text(g, "age_ns", NULL);
		text(g, "thread", NULL);
		return;
	}
	number(g, "age_ns", s->age_ns);
	boolean(g, "older", s->older);
	number(g, "thread", s->tid);
}

static void write_cluster(yajl_gen g, const struct cluster *c, const struct leaks_recording *r)
{
	char digits[24];

	yajl_gen_map_open(g);
	text(g, "type", c->type);
	text(g, "owner", c->owner);
	number(g, "size", c->size);
	number(g, "count", c->count);
	number(g, "bytes", c->bytes);
	number(g, "indirect_count", c->indirect_count);
	number(g, "indirect_bytes", c->indirect_bytes);
	number(g, "cycles", c->cycles);
	number(g, "known_count", c->known_count);
	boolean(g, "suppressed", c->suppressed);
	text(g, "preview", c->preview[0] ? c->preview : NULL);
	name(g, "samples");
	yajl_gen_array_open(g);
	for (uint32_t i = 0; i < c->samples; i++) {
		hex(digits, c->sample[i]);
		name(g, digits);
	}
	yajl_gen_array_close(g);
	write_source(g, &c->source, r);
	if (c->source.known) {
		number(g, "youngest_age_ns", c->youngest_ns);
		boolean(g, "several_threads", c->several_threads);
	}
	yajl_gen_map_close(g);
}

static void write_block(yajl_gen g, const struct why_block *b)
{
	yajl_gen_map_open(g);
	address(g, b->addr);
	number(g, "size", b->size);
	text(g, "type", b->type);
	yajl_gen_map_close(g);
}

static void write_why(yajl_gen g, const struct why *w, const struct leaks_recording *r)
{
	name(g, "why");
	yajl_gen_map_open(g);
	address(g, w->asked);
	boolean(g, "is_block", w->block.size != 0);
	if (w->block.size) {
		boolean(g, "reachable", w->reached);
		text(g, "root", w->reached ? w->root_name : NULL);
		name(g, "path");
		yajl_gen_array_open(g);
		vec_for_each (&w->path, b)
			write_block(g, b);
		yajl_gen_array_close(g);
		number(g, "pointers", w->pointers);
		number(g, "retained_count", w->retained_count);
		number(g, "retained_bytes", w->retained_bytes);
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
	name(g, "live");
	yajl_gen_map_open(g);
	number(g, "count", a->live_count);
	number(g, "bytes", a->live_bytes);
	yajl_gen_map_close(g);
	name(g, "leaked");
	yajl_gen_map_open(g);
	number(g, "count", a->leaks.total_count);
	number(g, "bytes", a->leaks.total_bytes);
	number(g, "direct_count", direct);
	number(g, "direct_bytes", direct_bytes);
	number(g, "indirect_count", a->leaks.total_count - direct);
	number(g, "indirect_bytes", a->leaks.total_bytes - direct_bytes);
	yajl_gen_map_close(g);
	name(g, "garbage");
	yajl_gen_map_open(g);
	number(g, "count", a->leaks.garbage_count);
	number(g, "bytes", a->leaks.garbage_bytes);
	yajl_gen_map_close(g);
}

int leaks_json(const struct analysis *a, const char *mode, const struct leaks_recording *r,
	       FILE *out)
{
	yajl_gen g = yajl_gen_alloc(NULL);

	if (!g)
		return -ENOMEM;
	yajl_gen_config(g, yajl_gen_print_callback, print, out);
	yajl_gen_config(g, yajl_gen_beautify, 1);
	yajl_gen_map_open(g);
	text(g, "memprof_version", MEMPROF_VERSION);
	number(g, "pid", (uint64_t)a->pid);
	text(g, "name", a->name);
	text(g, "executable", a->exe);
	number(g, "threads", a->threads);
	text(g, "mode", mode);
	number(g, "pause_predicted_ns", a->plan.pause_ns);
	number(g, "pause_predicted_most_ns", a->plan.pause_most_ns);
	number(g, "pause_ns", a->pause_ns);
	number(g, "snapshots", a->snapshots);
	number(g, "longest_pause_ns", a->longest_pause_ns);
	number(g, "longest_processor_wait_ns", a->longest_wait_ns);
	number(g, "copy_ns", a->copy_ns);
	number(g, "walk_ns", a->walk_ns);
	number(g, "scan_ns", a->scan_ns);
	number(g, "mark_ns", a->mark_ns);
	boolean(g, "exact", a->census.exact);
	text(g, "unknown_allocator", a->census.unknown[0] ? a->census.unknown : NULL);
	write_heaps(g, a);
	write_coverage(g, a);
	write_totals(g, a);
	name(g, "recording");
	if (r)
		r->about(r->ctx, g);
	else
		yajl_gen_null(g);
	name(g, "clusters");
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
