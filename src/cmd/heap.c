/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/interrupt.h"
#include "cmd/leaks_cmd.h"
#include "cmd/parse.h"
#include "heaps/consistent.h"
#include "heaps/resident.h"
#include "leaks/heap_types.h"
#include "lib/create.h"
#include "lib/human.h"
#include "lib/printable.h"

#define STOP_MS	  5000
#define MAX_LINES 40

static const char help[] =
    "usage: memprof heap -p PID [options]\n"
    "Lists what is live in the heap of a running process, by type and size, and what its resident\n"
    "memory consists of.  The process is stopped for some milliseconds while it is copied.\n"
    "  -p, --pid PID        the process\n"
    "      --list FILE      write every live block: address, usable size\n"
    "      --pre-copy       read it while it runs, stop it only to read what it wrote meanwhile\n"
    "      --in-place       keep the process stopped instead of copying it\n";

struct heap_command {
	pid_t pid;
	const char *list;
	enum snapshot_mode mode;
};

static int write_list(const struct census *c, const char *path)
{
	FILE *f;
	int ret = create_stream(path, &f);

	if (ret) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, create_error(ret));
		return MP_EXIT_OUTPUT;
	}
	vec_for_each (&c->blocks, b)
		fprintf(f, "%" PRIx64 " %" PRIu64 "\n", b->addr, b->size);
	if (fclose(f)) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, strerror(errno));
		return MP_EXIT_OUTPUT;
	}
	return MP_EXIT_OK;
}

static void line(uint64_t bytes, const struct resident *a, const char *what)
{
	printf("%11s  %5.1f %%  %s\n", human(bytes),
	       a->total ? 100.0 * (double)bytes / (double)a->total : 0, what);
}

static void print_resident(const struct resident *a)
{
	printf("\nresident memory, page by page:\n");
	line(a->live, a, "live blocks");
	line(a->cached, a, "free blocks in the caches of threads");
	line(a->metadata, a, "headers and tables of allocators");
	line(a->free, a, "free in the heap (fragmentation, and what allocators keep)");
	line(a->stacks, a, "stacks");
	line(a->modules_data, a, "data of program and libraries");
	line(a->modules_text, a, "text and constants of program and libraries");
	line(a->files, a, "other mapped files");
	line(a->shared, a, "shared memory and devices");
	line(a->anonymous, a, "other mappings of the program");
	line(a->total, a, "all of these");
	printf("%11s           the kernel reports (Rss)", human(a->rss));
	if (a->swap)
		printf("; %s more are swapped out", human(a->swap));
	if (a->live_untouched)
		printf("; %s of live blocks were never touched", human(a->live_untouched));
	printf("\n");
	if (a->anonymous > a->total / 2)
		printf("most of it is in mappings that the program made itself, without malloc(): "
		       "buffers, or a heap\n"
		       "of its own (as in PHP, Java, Go and node), whose blocks memprof cannot "
		       "list\n");
}

static void print_types(const struct heap_types *h)
{
	uint64_t left = 0, left_bytes = 0;

	printf("\n%s, %s:\n%11s %11s %10s  %s\n", counted(h->count, "live block"), human(h->bytes),
	       "bytes", "blocks", "size", "type");
	for (size_t i = 0; i < h->list.n; i++) {
		const struct heap_type *t = &h->list.at[i];
		const char *slash = t->owner ? strrchr(t->owner, '/') : NULL;

		if (i >= MAX_LINES) {
			left += t->count;
			left_bytes += t->bytes;
			continue;
		}
		printf("%11s %11s %10s  %s%s%s%s\n", human(t->bytes), thousands(t->count),
		       t->size ? human(t->size) : "",
		       t->type[0] ? printable(t->type) : "(no class)", slash ? "  [" : "",
		       slash ? printable(slash + 1) : "", slash ? "]" : "");
	}
	if (left)
		printf("%11s %11s             in smaller groups\n", human(left_bytes),
		       thousands(left));
}

/* Reads all that is needed from the image while it exists. */
static int examine_image(struct consistent_census *m, struct heap_types *types,
			 struct resident_stacks *stacks, struct mp_err *err)
{
	if (heap_types_take(types, &m->snapshot.image, &m->census) ||
	    resident_stacks(stacks, &m->snapshot.image))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory for the list of types");
	return 0;
}

static int run_heap(struct target *t, const struct heap_command *c)
{
	struct mp_err err = {0}, end_err = {0};
	struct resident_stacks stacks = {0};
	struct heap_types types = {0};
	struct snapshot_plan plan;
	struct resident resident;
	struct consistent_census m;
	int ret, walked, end, status = MP_EXIT_OK;

	interrupt_begin(MP_EXIT_FAILURE, MP_EXIT_FAILURE);
	ret = snapshot_plan(&plan, t, c->mode, 0, &err);
	if (!ret)
		ret = consistent_take(&m, t, &plan, STOP_MS, &walked, &err);
	if (ret) {
		target_ask_again(t, ret, &err);
		return complain(&err);
	}
	ret = walked;
	if (!ret)
		ret = examine_image(&m, &types, &stacks, &err);
	end = snapshot_end(&m.snapshot, &end_err);
	if (!ret)
		ret = resident_take(&resident, t->pid, &stacks, &m.census, &err);
	interrupt_end();
	if (ret) {
		target_ask_again(t, ret, &err);
		status = complain(&err);
	} else {
		leaks_print_plan(t, &plan);
		leaks_print_pause(m.snapshot.pause_ns, m.snapshot.wait_ns);
		putchar('\n');
		leaks_print_heaps(&m.census);
		print_types(&types);
		print_resident(&resident);
		if (c->list)
			status = write_list(&m.census, c->list);
	}
	if (end && end != -ESRCH && !status)
		status = complain(&end_err);
	vec_free(&stacks.sp);
	heap_types_free(&types);
	census_free(&m.census);
	return status;
}

int cmd_heap(int argc, char **argv)
{
	static const struct option options[] = {
	    {"pid", required_argument, NULL, 'p'}, {"list", required_argument, NULL, 'L'},
	    {"in-place", no_argument, NULL, 'I'},  {"pre-copy", no_argument, NULL, 'P'},
	    {"help", no_argument, NULL, 'h'},	   {0}};
	struct heap_command c = {0};
	struct mp_err err = {0};
	struct target t;
	int opt, status;

	while ((opt = getopt_long(argc, argv, ":p:h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		if (opt == 'L')
			c.list = optarg;
		else if (opt == 'I')
			c.mode = SNAPSHOT_IN_PLACE;
		else if (opt == 'P')
			c.mode = SNAPSHOT_PRE_COPY;
		else if (opt != 'p')
			return option_error("heap", opt, argv);
		else if (!parse_pid(optarg, &c.pid))
			return usage_error("heap: -p: '%s' is not a process id", optarg);
	}
	if (optind < argc)
		return unexpected_argument("heap", argv[optind]);
	if (!c.pid)
		return usage_error("heap: which process? give -p PID");
	if (target_look(&t, c.pid, &err))
		return complain(&err);
	t.steps = debug_steps();
	status = run_heap(&t, &c);
	target_close(&t);
	return status;
}
