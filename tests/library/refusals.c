/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls with what cannot work; each line is: the name, the code, the error's text.  Usage: refusals PID OUTPUT */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memprof.h"

static pid_t target;
static const char *output;

static void attach(const char *name, pid_t pid, const struct memprof_attach_options *o)
{
	struct memprof_error e = {0};
	memprof_session *s = NULL;
	int code = memprof_attach(pid, o, &s, &e);

	printf("%s %d %s\n", name, code, code ? e.text : "");
	if (code == MEMPROF_OUTPUT)
		printf("%s-errno %d\n", name, e.system);
	if (!code) {
		memprof_stop(s, NULL);
		memprof_free(s);
	}
}

static struct memprof_attach_options usual(void)
{
	struct memprof_attach_options o = {.size = sizeof(o)};

	o.output = output;
	return o;
}

/* Options of a caller that knows fewer, or more. */
static void other_sizes(void)
{
	struct {
		struct memprof_attach_options o;
		uint64_t more;
	} newer = {.o = usual()};
	struct memprof_attach_options older = usual();

	older.size = offsetof(struct memprof_attach_options, sample_interval);
	older.sample_interval = UINT64_MAX; /* not part of it */
	attach("older", target, &older);
	newer.o.size = sizeof(newer);
	attach("newer", target, &newer.o);
	newer.more = 1;
	attach("unknown", target, &newer.o);
	newer.o.size = 0;
	attach("no-size", target, &newer.o);
}

static void ranges(void)
{
	struct memprof_attach_options o;

	o = usual(), o.ring_bytes = 100000;
	attach("ring", target, &o);
	o = usual(), o.overhead_ppm = 2000000;
	attach("part", target, &o);
	o = usual(), o.jobs = 1000;
	attach("jobs", target, &o);
	o = usual(), o.for_ms = UINT64_MAX;
	attach("for", target, &o);
	o = usual(), o.cull_ms = UINT64_MAX / 2;
	attach("cull", target, &o);
	o = usual(), o.flags = 1ull << 40;
	attach("flags", target, &o);
	o = usual(), o.flags = MEMPROF_LOSSLESS | MEMPROF_NO_THINNING;
	attach("both", target, &o);
	o = usual(), o.output = "%q";
	attach("pattern", target, &o);
	o = usual(), o.output = "/nowhere/x.memprof";
	attach("folder", target, &o);
	o = usual(), o.to = "127.0.0.1";
	attach("token", target, &o);
}

static void session(void)
{
	struct memprof_position p = {.size = sizeof(p)};
	struct memprof_attach_options o = usual();
	struct memprof_error e = {0};
	memprof_session *s;
	char name[600];

	if (memprof_attach(target, &o, &s, &e)) {
		printf("session 1 %s\n", e.text);
		return;
	}
	attach("twice", target, NULL);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	printf("mark-long %d\n", memprof_mark(s, name, &p, &e));
	printf("mark-empty %d\n", memprof_mark(s, "", &p, &e));
	printf("mark-lines %d\n", memprof_mark(s, "a\nb", &p, &e));
	printf("wait %d\n", memprof_wait(s, 0, &e));
	printf("stop %d\n", memprof_stop(s, &e));
	printf("stop-again %d\n", memprof_stop(s, &e));
	printf("wait-ended %d\n", memprof_wait(s, -1, &e));
	printf("flush-ended %d %s\n", memprof_flush(s, &p, &e), e.text);
	memprof_free(s);
}

static void reading(void)
{
	struct memprof_leaks_options lo = {.size = sizeof(lo)};
	struct memprof_heap_options ho = {.size = sizeof(ho)};
	struct memprof_error e = {0};
	memprof_recording *r;
	memprof_groups *g;
	memprof_leaks *l;
	memprof_heap *h;
	memprof_filter *f = memprof_filter_new();

	printf("open %d %s\n", memprof_open("/nowhere/x.memprof", NULL, &r, &e), e.text);
	printf("open-text %d %s\n", memprof_open("/etc/passwd", NULL, &r, &e), e.text);
	printf("filter %d %s\n", memprof_filter_set(f, "colour", "red", &e), e.text);
	printf("filter-value %d %s\n", memprof_filter_set(f, "size_min", "red", &e), e.text);
	memprof_filter_free(f);
	if (!memprof_open(output, NULL, &r, &e)) {
		printf("cost %d %s\n", memprof_groups_begin(r, 77, &g, &e), e.text);
		memprof_close(r);
	}
	lo.mode = 99;
	printf("leaks-mode %d %s\n", memprof_leaks_find(target, &lo, &l, &e), e.text);
	lo = (struct memprof_leaks_options){.size = sizeof(lo)};
	lo.recording = "/etc/passwd";
	printf("leaks-recording %d %s\n", memprof_leaks_find(target, &lo, &l, &e), e.text);
	ho.mode = -1;
	printf("heap-mode %d %s\n", memprof_heap_take(target, &ho, &h, &e), e.text);
	printf("heap-self %d %s\n", memprof_heap_take(getpid(), NULL, &h, &e), e.text);
	memprof_close(NULL);
	memprof_free(NULL);
	memprof_filter_free(NULL);
	memprof_groups_free(NULL);
	memprof_frames_free(NULL);
	memprof_leaks_free(NULL);
	memprof_heap_free(NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	target = atoi(argv[1]);
	output = argv[2];
	attach("none", 0, NULL);
	attach("gone", 0x3fffff, NULL);
	attach("self", getpid(), NULL);
	other_sizes();
	ranges();
	session();
	reading();
	return 0;
}
