/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A service that profiles its sibling: it records the process with the given pid, says every second what
 * is live, and at the end which stacks hold the most.
 *
 *	cc sibling.c $(pkg-config --cflags --libs memprof) -o sibling
 *	sudo ./sibling PID SECONDS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "memprof.h"

#define STACKS 3
#define FRAMES 6

static int failed(const char *what, const struct memprof_error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	return e->code;
}

/* Called by the library's thread. */
static void say(void *unused, memprof_session *s)
{
	struct memprof_progress p = {.size = sizeof(p)};

	(void)unused;
	memprof_look(s, &p);
	printf("%5.1f s  %" PRIu64 " events, %" PRIu64 " lost, %" PRIu64 " bytes live\n",
	       (double)p.duration_ns / 1e9, p.events, p.lost, p.live_bytes);
}

static void print_stack(memprof_recording *r, uint32_t stack)
{
	struct memprof_frame f = {.size = sizeof(f)};
	memprof_frames *frames;

	if (memprof_frames_begin(r, stack, &frames, NULL))
		return;
	for (int i = 0; i < FRAMES && memprof_frames_next(frames, &f); i++) {
		if (f.source)
			printf("    %s (%s:%" PRIu32 ")\n", f.function, f.source, f.line);
		else
			printf("    %s [%s]\n", f.function, f.library ? f.library : "?");
	}
	memprof_frames_free(frames);
}

/* Prints the stacks that hold the most. */
static int print_live(const char *path)
{
	struct memprof_group g = {.size = sizeof(g)};
	struct memprof_error e;
	memprof_recording *r;
	memprof_groups *groups;

	if (memprof_open(path, NULL, &r, &e))
		return failed("open", &e);
	if (memprof_groups_begin(r, MEMPROF_LIVE_BYTES, &groups, &e)) {
		memprof_close(r);
		return failed("groups", &e);
	}
	for (int i = 0; i < STACKS && memprof_groups_next(groups, &g); i++) {
		printf("%" PRIu64 " bytes in %" PRIu64 " blocks:\n", g.sums.live_bytes,
		       g.sums.live_blocks);
		print_stack(r, g.stack);
	}
	memprof_groups_free(groups);
	memprof_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	struct memprof_attach_options o = {.size = sizeof(o)};
	struct memprof_error e;
	memprof_session *s;
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: sibling PID SECONDS\n");
		return MEMPROF_USAGE;
	}
	o.output = "sibling-%p.memprof";
	o.progress = say;
	if (memprof_attach(atoi(argv[1]), &o, &s, &e))
		return failed("attach", &e);
	/* MEMPROF_TIMEOUT: it still runs. */
	status = memprof_wait(s, atoi(argv[2]) * 1000, &e);
	if (status == MEMPROF_TIMEOUT)
		status = memprof_stop(s, &e);
	status = status ? failed("record", &e) : print_live(memprof_path(s));
	memprof_free(s);
	return status;
}
