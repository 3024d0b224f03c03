/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* memprof info and memprof verify. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "arch/arch.h"
#include "cmd/cmd.h"
#include "lib/hex.h"
#include "lib/human.h"
#include "lib/json_gen.h"
#include "lib/printable.h"
#include "model/contents.h"

static const char info_help[] =
    "usage: memprof info RECORDING [--json]\n"
    "Prints what was recorded, what the recording contains, and how long freed blocks lived.\n"
    "      --json  as JSON\n";
static const char verify_help[] =
    "usage: memprof verify RECORDING\n"
    "Reads all of a recording and checks it: checksums, decoding, references, binaries,\n"
    "its end.\n"
    "Exit status 0: complete and undamaged; 13: damaged or cut off (the message says where).\n";

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

static int write_json(const struct contents *c)
{
	yajl_gen g = json_begin(stdout, true);
	uint64_t bytes;
	char id[33];

	if (!g)
		return -ENOMEM;
	id_text(c, id);
	yajl_gen_map_open(g);
	json_text(g, "id", id);
	json_text(g, "memprof_version", c->info.memprof_version);
	json_number(g, "piece", c->info.piece);
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
	putchar('\n');
	return 0;
}

static void text_list(const char *title, const char *const *name, const uint64_t *v, size_t n)
{
	printf("%s\n", title);
	for (size_t i = 0; i < n; i++) {
		char words[40];

		snprintf(words, sizeof(words), "%s", name[i]);
		for (char *p = words; *p; p++)
			*p = *p == '_' ? ' ' : *p;
		if (v[i])
			printf("  %-14s %16s\n", words, thousands(v[i]));
	}
}

static void write_text(const struct contents *c)
{
	time_t start = (time_t)(c->info.start_unix_ns / 1000000000u);
	uint64_t events = c->items[MPF_EVENT] + c->culled_events, bytes,
		 binaries = whole_binaries(c, &bytes);
	char id[33], when[64] = "?";
	struct tm tm;

	id_text(c, id);
	if (gmtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("recording  %s, memprof %s\n", id, c->info.memprof_version);
	printf("process    %s (pid %u, %s, %s)\n", printable(c->info.cmdline), c->info.pid,
	       c->info.mode ? "run" : "attached", arch_machine_name(c->info.machine));
	if (c->info.processes)
		printf("processes  %u, merged; the first is above\n", c->info.processes);
	if (c->info.piece)
		printf("piece      %u, from %.3f s on\n", c->info.piece,
		       (double)c->info.piece_ns / 1e9);
	printf("time       %s, %.3f s\n", when, (double)c->end_ns / 1e9);
	if (c->info.what == MP_PAGE_FAULTS)
		printf("event      page faults\n");
	if (c->info.sample_interval)
		printf("sampled    on average one per %s requested\n",
		       human(c->info.sample_interval));
	printf("file       %s, %.1f bytes an event\n", human(c->file_bytes),
	       events ? (double)(c->file_bytes - c->binaries.stored) / (double)events : 0.0);
	if (c->binaries.list.n || c->binaries.damaged)
		printf("binaries   %s embedded, %s%s\n", thousands(binaries), human(bytes),
		       binaries < c->binaries.list.n || c->binaries.damaged ? "; others are damaged"
									    : "");
	if (c->truncated)
		printf("cut off    %s\n", c->truncated);
	text_list("items", item_name, c->items, COUNT(item_name));
	text_list("events", event_name, c->events, COUNT(event_name));
	if (c->info.what == MP_PAGE_FAULTS)
		return;
	text_list("lifetimes of freed blocks", lifetime_name, c->lifetime, LIFETIMES);
	printf("not freed        %16s\n", thousands(c->leaked));
	if (c->culled_blocks)
		printf("only counted     %16s\n", thousands(c->culled_blocks));
}

/* Return: 0 with the recording's path in *@path; the exit status after an error; or -1 if the help
 * was printed. */
static int parse(int argc, char **argv, const char *help, bool *json, const char **path)
{
	static const struct option all[] = {
	    {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	const struct option *options = json ? all : all + 1;
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return -1;
		}
		if (c != 'j' || !json)
			return option_error(argv[0], c, argv, options);
		*json = true;
	}
	if (optind == argc)
		return usage_error("%s: which recording?", argv[0]);
	if (optind + 1 < argc)
		return usage_error("%s: unexpected argument '%s'", argv[0], argv[optind + 1]);
	*path = argv[optind];
	return 0;
}

int cmd_info(int argc, char **argv)
{
	struct mp_err err = {0};
	struct contents c;
	const char *path = NULL;
	bool json = false;
	int ret = parse(argc, argv, info_help, &json, &path);

	if (ret)
		return ret < 0 ? MP_EXIT_OK : ret;
	if (contents_read(path, &c, &err))
		return complain(&err);
	if (json)
		ret = write_json(&c);
	else
		write_text(&c);
	contents_free(&c);
	if (ret || fflush(stdout) || ferror(stdout)) {
		mp_fail(&err, MP_EXIT_OUTPUT, -EIO, "cannot write to standard output");
		return complain(&err);
	}
	return MP_EXIT_OK;
}

static int judge_binaries(const struct contents *c, const char *path, struct mp_err *err)
{
	vec_for_each (&c->binaries.list, b) {
		if (b->wrong)
			return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
				       "%s: the embedded binary %s %s", path, b->path, b->wrong);
	}
	return c->binaries.damaged ? mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
					     "%s: an embedded binary is damaged", path)
				   : 0;
}

static int check_contents(const struct contents *c, const char *path, struct mp_err *err)
{
	if (c->truncated)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL, "%s: %s", path, c->truncated);
	if (c->unknown_stacks || c->unknown_hooks)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s: the stacks of %s and the functions of %s are missing", path,
			       counted(c->unknown_stacks, "event"),
			       counted(c->unknown_hooks, "event"));
	if (!c->has_finish)
		return mp_fail(err, MP_EXIT_RECORDING, -EINVAL,
			       "%s: the record of how the recording ended is missing", path);
	return judge_binaries(c, path, err);
}

int cmd_verify(int argc, char **argv)
{
	struct mp_err err = {0};
	struct contents c;
	const char *path = NULL;
	int ret = parse(argc, argv, verify_help, NULL, &path);

	if (ret)
		return ret < 0 ? MP_EXIT_OK : ret;
	if (contents_read(path, &c, &err))
		return complain(&err);
	ret = check_contents(&c, path, &err);
	if (!ret)
		printf("%s: complete and undamaged: %s, %s, %s\n", printable(path),
		       counted(c.items[MPF_EVENT], "event"), counted(c.items[MPF_STACK], "stack"),
		       human(c.file_bytes));
	contents_free(&c);
	return ret ? complain(&err) : MP_EXIT_OK;
}
