/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>
#include "report/order.h"

#define MAX_INLINED 64

static void print(void *ctx, const char *text, size_t n)
{
	fwrite(text, 1, n, ctx);
}

/* Length of the UTF-8 sequence at @s, 0 if it is none (RFC 3629). */
static size_t utf8(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80			 ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;

	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Names come from other people's programs: what is not UTF-8 becomes '?'. */
static void string(yajl_gen g, const char *s)
{
	size_t n = strlen(s), at = 0, k;
	unsigned char *copy = malloc(n + 1);

	if (!copy)
		return;
	memcpy(copy, s, n + 1);
	while (at < n) {
		k = utf8(copy + at, n - at);
		if (!k)
			copy[at] = '?';
		at += k ? k : 1;
	}
	yajl_gen_string(g, copy, n);
	free(copy);
}

static void name(yajl_gen g, const char *s)
{
	yajl_gen_string(g, (const unsigned char *)s, strlen(s));
}

static void number(yajl_gen g, const char *key, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	name(g, key);
	yajl_gen_number(g, digits, (size_t)n);
}

static void text(yajl_gen g, const char *key, const char *v)
{
	name(g, key);
	if (v)
		string(g, v);
	else
		yajl_gen_null(g);
}

static void boolean(yajl_gen g, const char *key, bool v)
{
	name(g, key);
	yajl_gen_bool(g, v);
}

/* Addresses do not fit in a double: the same as 16 hexadecimal digits beside them. */
static void address(yajl_gen g, uint64_t v)
{
	char hex[24];

	number(g, "address", v);
	snprintf(hex, sizeof(hex), "%016llX", (unsigned long long)v);
	text(g, "address_s", hex);
}

static void timeval(yajl_gen g, const char *key, uint64_t ns)
{
	name(g, key);
	yajl_gen_map_open(g);
	number(g, "secs", ns / 1000000000u);
	number(g, "fract_nsecs", ns % 1000000000u);
	yajl_gen_map_close(g);
}

static void write_info(yajl_gen g, const struct model *m)
{
	static const char *const reason[] = {"unknown", "detached", "exited",
					     "execed",	"time",	    "error"};
	char id[33];

	for (int i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", m->info.id[i]);
	text(g, "id", id);
	text(g, "memprof_version", m->info.memprof_version);
	text(g, "executable", m->info.executable);
	text(g, "cmdline", m->info.cmdline);
	text(g, "architecture", m->info.machine == 62 ? "x86_64" : "unknown");
	number(g, "pid", m->info.pid);
	text(g, "mode", m->info.mode ? "run" : "attach");
	timeval(g, "timestamp", m->info.start_unix_ns);
	timeval(g, "runtime", m->end_ns);
	text(g, "end_reason",
	     m->has_finish && m->finish.reason <= MP_END_ERROR ? reason[m->finish.reason]
							       : "unknown");
	boolean(g, "restored", m->has_finish && m->finish.restored);
	number(g, "attach_stop_ns", m->finish.attach_stop_ns);
	number(g, "detach_stop_ns", m->finish.detach_stop_ns);
	text(g, "truncated", m->truncated);
}

static void write_totals(yajl_gen g, const struct model *m)
{
	name(g, "totals");
	yajl_gen_map_open(g);
	number(g, "events", m->events);
	number(g, "allocations", m->total.allocations);
	number(g, "allocated_bytes", m->total.allocated_bytes);
	number(g, "allocated_usable_bytes", m->total.usable_bytes);
	number(g, "frees", m->total.frees);
	number(g, "leaked_count", m->total.live_blocks);
	number(g, "leaked_bytes", m->total.live_bytes);
	number(g, "leaked_usable_bytes", m->total.live_usable);
	number(g, "temporary", m->total.temporary);
	number(g, "temporary_bytes", m->total.temporary_bytes);
	number(g, "peak_bytes", m->peak_bytes);
	number(g, "peak_count", m->peak_blocks);
	timeval(g, "peak_at", m->peak_time_ns);
	number(g, "foreign_frees", m->foreign_frees);
	number(g, "foreign_reallocs", m->foreign_reallocs);
	number(g, "housekeeping_frees", m->housekeeping_frees);
	number(g, "failed_reallocs", m->failed_reallocs);
	number(g, "culled_count", m->culled_blocks);
	number(g, "culled_bytes", m->culled_bytes);
	number(g, "mapped_bytes", m->mapped_bytes);
	number(g, "maps", m->total.maps);
	number(g, "inner_maps", m->inner_maps);
	number(g, "unmaps", m->unmaps);
	number(g, "unique_backtrace_count", order_used(m));
	yajl_gen_map_close(g);
}

static void write_losses(yajl_gen g, const struct model *m)
{
	const struct mp_losses *l = &m->losses;

	name(g, "losses");
	yajl_gen_map_open(g);
	number(g, "lost_allocations", l->lost_alloc);
	number(g, "lost_bytes", l->lost_bytes);
	number(g, "lost_frees", l->lost_free);
	number(g, "lost_reallocs", l->lost_realloc);
	number(g, "lost_maps", l->lost_map);
	number(g, "lost_other", l->lost_other);
	number(g, "lost_no_slot", l->lost_no_slot);
	number(g, "stale", l->stale);
	number(g, "queue_dropped_batches", l->queue_batches);
	number(g, "queue_dropped_events", l->queue_events);
	number(g, "queue_dropped_bytes", l->queue_bytes);
	number(g, "queue_peak_bytes", l->queue_peak_bytes);
	number(g, "stacks_full", l->stacks_full);
	number(g, "missed_new", l->missed_new);
	number(g, "mismatches", m->mismatches);
	number(g, "stacks_total", l->stacks_total);
	number(g, "stacks_complete", l->stacks_complete);
	number(g, "stacks_cached", l->stacks_cached);
	yajl_gen_map_close(g);
}

static void write_lists(yajl_gen g, const struct model *m)
{
	name(g, "functions");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->hooks.n; i++) {
		yajl_gen_map_open(g);
		text(g, "function", m->hooks.at[i].name);
		text(g, "library", m->hooks.at[i].module);
		number(g, "calls", m->hooks.at[i].calls);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	name(g, "threads");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->threads.n; i++) {
		const struct model_thread *t = &m->threads.at[i];

		yajl_gen_map_open(g);
		number(g, "thread", t->tid);
		text(g, "name", t->name);
		number(g, "allocations", t->allocations);
		number(g, "allocated_bytes", t->allocated_bytes);
		number(g, "frees", t->frees);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	name(g, "markers");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->marks.n; i++) {
		yajl_gen_map_open(g);
		timeval(g, "timestamp_relative", m->marks.at[i].time_ns);
		text(g, "name", m->marks.at[i].name);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	name(g, "timeline");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->timeline.n; i++) {
		const struct point *p = &m->timeline.at[i];

		yajl_gen_map_open(g);
		timeval(g, "timestamp_relative", p->time_ns);
		number(g, "live_bytes", p->live_bytes);
		number(g, "live_count", p->live_blocks);
		number(g, "allocations", p->allocations);
		number(g, "frees", p->frees);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
	name(g, "samples");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->samples.n; i++) {
		const struct mp_sample *s = &m->samples.at[i];

		yajl_gen_map_open(g);
		timeval(g, "timestamp_relative", s->time_ns);
		number(g, "rss", s->rss);
		number(g, "anonymous", s->anonymous);
		number(g, "file", s->file);
		number(g, "swap", s->swap);
		number(g, "address_space", s->address_space);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_frame(yajl_gen g, const struct frame *f)
{
	yajl_gen_map_open(g);
	address(g, f->address);
	text(g, "function", f->function);
	if (f->raw_function)
		text(g, "raw_function", f->raw_function);
	if (f->library)
		text(g, "library", f->library);
	if (f->source) {
		text(g, "source", f->source);
		number(g, "line", f->line);
		number(g, "column", f->column);
	}
	boolean(g, "is_inline", f->is_inline);
	yajl_gen_map_close(g);
}

/* Outermost first, the allocator last. */
static void write_backtrace(yajl_gen g, struct model *m, const struct model_stack *s)
{
	name(g, "backtrace");
	yajl_gen_array_open(g);
	for (uint32_t i = s->n; i-- > 0;) {
		struct frame f[MAX_INLINED];
		uint32_t n = model_frames(m, m->pc.at[s->first + i], f, MAX_INLINED);

		while (n-- > 0)
			write_frame(g, &f[n]);
	}
	yajl_gen_array_close(g);
	boolean(g, "complete", s->flags & SS_STACK_COMPLETE);
}

static void write_groups(yajl_gen g, struct model *m)
{
	name(g, "allocation_groups");
	yajl_gen_array_open(g);
	for (uint32_t id = 0; id < m->nstacks; id++) {
		const struct group *gr = &m->group[id];

		if (!gr->allocations && !gr->maps)
			continue;
		yajl_gen_map_open(g);
		number(g, "backtrace_id", id);
		number(g, "allocated_count", gr->allocations);
		number(g, "size", gr->allocated_bytes);
		number(g, "usable_size", gr->usable_bytes);
		number(g, "freed_count", gr->frees);
		number(g, "leaked_count", gr->live_blocks);
		number(g, "leaked_bytes", gr->live_bytes);
		number(g, "temporary_count", gr->temporary);
		number(g, "peak_bytes", gr->peak_bytes);
		number(g, "peak_count", gr->peak_blocks);
		number(g, "maps", gr->maps);
		number(g, "map_bytes", gr->map_bytes);
		timeval(g, "min_timestamp_relative", gr->first_ns);
		timeval(g, "max_timestamp_relative", gr->last_ns);
		write_backtrace(g, m, &m->stack[id]);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void write_blocks(yajl_gen g, const struct model *m)
{
	name(g, "leaks");
	yajl_gen_array_open(g);
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct model_block *b = &m->blocks.at[i];

		yajl_gen_map_open(g);
		address(g, b->addr);
		number(g, "size", b->size);
		number(g, "extra_space", b->usable - b->size);
		timeval(g, "timestamp_relative", b->time_ns);
		number(g, "thread", b->tid);
		number(g, "backtrace_id", b->stack);
		boolean(g, "is_mmaped", b->flags & EV_F_MMAPPED);
		boolean(g, "in_main_arena", !(b->flags & (EV_F_NON_MAIN | EV_F_MMAPPED)));
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

int json_write(struct model *m, bool with_blocks, FILE *out)
{
	yajl_gen g = yajl_gen_alloc(NULL);

	if (!g)
		return -ENOMEM;
	yajl_gen_config(g, yajl_gen_print_callback, print, out);
	yajl_gen_config(g, yajl_gen_beautify, 1);
	yajl_gen_config(g, yajl_gen_indent_string, " ");
	yajl_gen_map_open(g);
	write_info(g, m);
	write_totals(g, m);
	write_losses(g, m);
	write_lists(g, m);
	write_groups(g, m);
	if (with_blocks)
		write_blocks(g, m);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	return ferror(out) ? -EIO : 0;
}
