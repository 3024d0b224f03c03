/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/contents_list.h"

#include <errno.h>
#include <time.h>
#include "arch/arch.h"
#include "lib/hex.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"

static const char *const item_name[] = {"",	     "hooks",	 "modules",	"threads", "stacks",
					"events",    "samples",	 "losses",	"symbols", "finish",
					"culled",    "marks",	 "map_usage",	"",	   "",
					"processes", "sections", "stack_peaks", "",	   ""};
_Static_assert(sizeof(item_name) / sizeof(item_name[0]) == MPF_KINDS, "a name for each");
static const char *const event_name[] = {
    "",	     "alloc",	     "free",	    "realloc_begin", "realloc_end", "map",
    "unmap", "unmap_failed", "remap_begin", "remap_end",     "mallopt",	    "fault"};
static const char *const lifetime_name[LIFETIMES] = {
    "below_1us", "below_10us", "below_100us", "below_1ms",   "below_10ms",   "below_100ms",
    "below_1s",	 "below_10s",  "below_100s",  "below_1000s", "below_10000s", "longer"};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void id_text(const struct contents *c, char *id)
{
	hex_text(c->info.id, sizeof(c->info.id), id);
}

static uint64_t whole_binaries(const struct contents *c, uint64_t *bytes)
{
	uint64_t n = 0;

	*bytes = 0;
	vec_for_each (&c->binaries.list, b) {
		n += !b->wrong;
		*bytes += b->wrong ? 0 : b->size;
	}
	return n;
}

static void json_list(yajl_gen g, const char *key, const char *const *name, const uint64_t *v,
		      size_t n)
{
	json_name(g, key);
	yajl_gen_map_open(g);
	for (size_t i = 0; i < n; i++) {
		if (name[i][0])
			json_number(g, name[i], v[i]);
	}
	yajl_gen_map_close(g);
}

int contents_json(const struct contents *c, FILE *out)
{
	yajl_gen g = json_begin(out, true);
	uint64_t bytes;
	char id[33];

	if (!g)
		return -ENOMEM;
	id_text(c, id);
	yajl_gen_map_open(g);
	json_text(g, "id", id);
	json_text(g, "memprof_version", c->info.memprof_version);
	json_number(g, "piece", c->info.piece);
	if (c->info.keep)
		json_number(g, "keep", c->info.keep);
	if (c->info.live_only)
		json_boolean(g, "live_only", true);
	json_number(g, "processes", mpf_processes(c->reader));
	json_text(g, "executable", c->info.executable);
	json_text(g, "called", c->info.called[0] ? c->info.called : NULL);
	json_text(g, "cmdline", c->info.cmdline);
	json_number(g, "pid", c->info.pid);
	json_text(g, "architecture", arch_machine_name(c->info.machine));
	json_text(g, "mode", c->info.mode ? "run" : "attach");
	json_timeval(g, "timestamp", c->info.start_unix_ns);
	json_timeval(g, "runtime", c->end_ns);
	json_text(g, "event", c->info.what == MP_PAGE_FAULTS ? "page-faults" : "allocations");
	json_number(g, "sample_interval", c->info.sample_interval);
	json_number(g, "file_bytes", c->file_bytes);
	json_text(g, "truncated", c->truncated);
	json_list(g, "items", item_name, c->items, COUNT(item_name));
	json_list(g, "events", event_name, c->events, COUNT(event_name));
	json_list(g, "lifetimes", lifetime_name, c->lifetime, LIFETIMES);
	json_number(g, "leaked_count", c->leaked);
	json_number(g, "culled_count", c->culled_blocks);
	json_number(g, "binaries_count", whole_binaries(c, &bytes));
	json_number(g, "binaries_bytes", bytes);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	putc('\n', out);
	return ferror(out) ? -EIO : 0;
}

/* Return: how many pieces are deleted when the piece before this one is complete. */
static uint32_t deleted_before(const struct mp_info *info)
{
	return info->piece > info->keep ? info->piece - info->keep : 0;
}

static void text_list(const char *title, const char *const *name, const uint64_t *v, size_t n,
		      FILE *out)
{
	fprintf(out, "%s\n", title);
	for (size_t i = 0; i < n; i++) {
		char words[40];

		snprintf(words, sizeof(words), "%s", name[i]);
		for (char *p = words; *p; p++)
			*p = *p == '_' ? ' ' : *p;
		if (v[i])
			fprintf(out, "  %-14s %16s\n", words, thousands(v[i]));
	}
}

void contents_text(const struct contents *c, FILE *out)
{
	time_t start = (time_t)(c->info.start_unix_ns / 1000000000u);
	uint64_t events = c->items[MPF_EVENT] + c->culled_events, bytes,
		 binaries = whole_binaries(c, &bytes);
	char id[33], when[64] = "?";
	struct tm tm;

	id_text(c, id);
	if (gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fprintf(out, "recording  %s, memprof %s\n", id, c->info.memprof_version);
	fprintf(out, "process    %s (pid %u, %s, %s)\n", printable(c->info.cmdline), c->info.pid,
		c->info.mode ? "run" : "attached", arch_machine_name(c->info.machine));
	if (c->info.processes)
		fprintf(out, "processes  %u, merged; the first is above\n", c->info.processes);
	if (c->info.piece)
		fprintf(out, "piece      %u, from %.3f s on\n", c->info.piece,
			(double)c->info.piece_ns / 1e9);
	if (c->info.keep)
		fprintf(out, "kept       the newest %u of the pieces before; %u deleted (--keep)\n",
			c->info.keep, deleted_before(&c->info));
	if (c->info.live_only)
		fprintf(out, "live only  blocks that were live when it was written, no calls\n");
	fprintf(out, "time       %s, %.3f s\n", when, (double)c->end_ns / 1e9);
	if (c->info.what == MP_PAGE_FAULTS)
		fprintf(out, "event      page faults\n");
	if (c->info.sample_interval)
		fprintf(out, "sampled    on average one per %s requested\n",
			human(c->info.sample_interval));
	fprintf(out, "file       %s, %.1f bytes an event\n", human(c->file_bytes),
		events ? (double)(c->file_bytes - c->binaries.stored) / (double)events : 0.0);
	if (c->binaries.list.n || c->binaries.damaged)
		fprintf(out, "binaries   %s embedded, %s%s\n", thousands(binaries), human(bytes),
			binaries < c->binaries.list.n || c->binaries.damaged
			    ? "; others are damaged"
			    : "");
	if (c->truncated)
		fprintf(out, "cut off    %s\n", c->truncated);
	text_list("items", item_name, c->items, COUNT(item_name), out);
	text_list("events", event_name, c->events, COUNT(event_name), out);
	if (c->info.what == MP_PAGE_FAULTS)
		return;
	text_list("lifetimes of freed blocks", lifetime_name, c->lifetime, LIFETIMES, out);
	fprintf(out, "not freed        %16s\n", thousands(c->leaked));
	if (c->culled_blocks)
		fprintf(out, "only counted     %16s\n", thousands(c->culled_blocks));
}
