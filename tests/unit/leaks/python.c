/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Python's objects of a real process: the list of blocks agrees with pymalloc's own report of its
 * size classes, and damaged memory neither crashes nor hangs any step. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "heaps/census.h"
#include "heaps/python/python.h"
#include "leaks/types/block_names.h"
#include "leaks/graph_take.h"
#include "leaks/python/python.h"
#include "leaks/python/python_garbage.h"
#include "../damaged.h"
#include "../stopped.h"

#define CLASSES 32
#define DAMAGES 12
/* Objects that Python makes or frees between its report and the look. */
#define SLACK 16

static const char script[] =
    "import ctypes, gc, sys\n"
    "class Node: pass\n"
    "gc.collect(); gc.disable()\n"
    "keep = {i: [str(i), {i, i + 1}, (i, {'a': float(i)})] for i in range(3000)}\n"
    "for i in range(500):\n"
    "    a, b = Node(), Node(); a.b, b.a = b, a\n"
    "for i in range(100):\n"
    "    a = [i] * 20; ctypes.pythonapi.Py_IncRef(ctypes.py_object(a))\n"
    "a = b = None\n"
    "sys._debugmallocstats(); print('ready', file=sys.stderr, flush=True)\n"
    "sys.stdin.read()\n";

struct victim {
	pid_t pid;
	int in;			/* its standard input */
	uint64_t used[CLASSES]; /* blocks of each size class, as it says */
};

static void start(struct victim *v)
{
	int in[2], out[2];
	unsigned class, size, pools, used;
	char line[256];
	FILE *f;

	memset(v, 0, sizeof(*v));
	assert_int_equal(pipe(in) | pipe(out), 0);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (!v->pid) {
		dup2(in[0], 0);
		dup2(out[1], 2);
		close(in[1]);
		close(out[0]);
		execl("/usr/bin/python3", "python3", "-I", "-c", script, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	v->in = in[1];
	f = fdopen(out[0], "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strcmp(line, "ready\n") != 0) {
		if (sscanf(line, "%u %u %u %u", &class, &size, &pools, &used) == 4 &&
		    class < CLASSES && size == 16 * (class + 1))
			v->used[class] = used;
	}
	fclose(f);
	assert_true(v->used[3] > 3000);
}

static bool sleeps(pid_t pid)
{
	char path[64], text[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	return !strncmp(text, "0 0x0 ", 6); /* read(0, ...) */
}

static void wait_sleeping(const struct victim *v)
{
	struct deadline patience = deadline_in_ms(300000);

	while (!sleeps(v->pid)) {
		assert_false(deadline_passed(&patience));
		assert_int_equal(waitpid(v->pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
}

struct result {
	struct census census;
	struct graph graph;
	struct block_names names;
	struct leaks leaks;
};

/* All steps of memprof heap and memprof leaks. */
static int take(struct result *r, struct image *img)
{
	struct modules *m = modules_new(img);
	struct mp_err err = {0};
	struct coverage cover = {0};
	int ret;

	memset(r, 0, sizeof(*r));
	assert_non_null(m);
	ret = census_take(&r->census, img, &err);
	if (!ret)
		ret = graph_take(&r->graph, img, &r->census, true, &cover, &err);
	if (!ret)
		ret = block_names_take(&r->names, &r->graph, img, m);
	if (!ret)
		ret = mark_leaks(&r->graph, &r->leaks);
	if (!ret)
		ret = python_garbage(&r->leaks, &r->graph, img);
	modules_free(m);
	return ret;
}

static void drop(struct result *r)
{
	block_names_free(&r->names);
	leaks_free(&r->leaks);
	graph_free(&r->graph);
	census_free(&r->census);
}

static const struct heap *pymalloc(const struct result *r)
{
	vec_for_each (&r->census.heaps, h) {
		if (python_minor(h))
			return h;
	}
	return NULL;
}

static uint64_t named(const struct result *r, const char *name)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->graph.n; i++) {
		const struct block_name *is = block_names_of(&r->names, i);

		n += is && is->source == NAME_OBJECT && !strcmp(is->text, name);
	}
	return n;
}

static void check_sizes(const struct victim *v, const struct result *r)
{
	const struct heap *h = pymalloc(r);
	uint64_t found[CLASSES] = {0};

	assert_non_null(h);
	assert_true(h->exact);
	assert_int_equal(h->damaged.n, 0);
	for (uint32_t i = 0; i < r->graph.n; i++) {
		const struct heap_block *b = &r->graph.block[i];

		vec_for_each (&h->owned, o) {
			if (b->addr >= o->start && b->addr < o->end)
				found[b->size / 16 - 1]++;
		}
	}
	for (int i = 0; i < CLASSES; i++)
		assert_in_range(found[i], v->used[i] > SLACK ? v->used[i] - SLACK : 0,
				v->used[i] + SLACK);
}

static void check_leaks(const struct result *r)
{
	uint64_t lists = 0;

	vec_for_each (&r->leaks.direct, l) {
		const struct python_type *t = python_type(r->graph.python, l->block);

		assert_non_null(t);
		assert_string_equal(t->name, "list");
		lists++;
	}
	/* An old value on a stack can keep one. */
	assert_in_range(lists, 90, 100);
	assert_in_range(r->leaks.garbage_count, 1000 - 20, 5000);
}

static void check_damaged(struct image *img)
{
	size_t refused = 0, doubted = 0;
	struct result r;

	for (uint64_t seed = 1; seed <= DAMAGES; seed++) {
		damage_begin(img, seed, 512, 32768);
		if (take(&r, img) || !pymalloc(&r))
			refused++;
		else
			doubted += !pymalloc(&r)->exact;
		damage_end(img);
		drop(&r);
	}
	print_message("# of %d damaged processes %zu without pymalloc, %zu doubted\n", DAMAGES,
		      refused, doubted);
	assert_true(refused < DAMAGES && doubted);
}

static void test_process(void **state)
{
	struct stopped at_rest;
	struct image *img = &at_rest.img;
	struct victim v;
	struct result r;

	(void)state;
	if (access("/usr/bin/python3", X_OK))
		skip();
	start(&v);
	wait_sleeping(&v);
	stopped_open(&at_rest, v.pid);
	assert_int_equal(take(&r, img), 0);
	check_sizes(&v, &r);
	check_leaks(&r);
	assert_in_range(named(&r, "list"), 3100, 3300);
	assert_in_range(named(&r, "Node"), 1000, 1000);
	assert_in_range(named(&r, "table of set"), 0, 100);
	drop(&r);
	check_damaged(img);
	stopped_close(&at_rest);
	close(v.in);
	waitpid(v.pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_process)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
