/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers for recordings that programs seldom make; tests/system/test_server_answers.py has the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/model.h"
#include "server/answers/frames.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/recordings.h"

#define START	1700000000000000000ull
#define LAST(a) ((a) + sizeof(a) / sizeof((a)[0]) - 1)

static char path[] = "/tmp/memprof-unit-XXXXXX";

/* ------------------------------------------------------------------ recordings -- */

static struct mpf_writer *begin(uint16_t machine, uint32_t processes)
{
	static const struct mp_hook_info hooks[] = {{"malloc", "libc.so.6", 1},
						    {"malloc", "libjemalloc.so.2", 1}};
	struct mp_info info = {
	    .pid = 7, .start_unix_ns = START, .machine = machine, .processes = processes};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	assert_int_equal(mpf_put_hook(w, &hooks[0]), 0);
	assert_int_equal(mpf_put_hook(w, &hooks[1]), 0);
	return w;
}

static void put_alloc(struct mpf_writer *w, const struct mp_event *ev)
{
	struct mp_event full = *ev;

	full.kind = EV_ALLOC;
	full.fd = -1;
	full.tid = 5;
	full.usable = full.usable ? full.usable : full.size;
	assert_int_equal(mpf_put_event(w, &full), 0);
}

/* A stack of one address with these frames, innermost first. */
static void put_stack(struct mpf_writer *w, uint32_t id, const struct mp_symbol *sym, uint32_t n)
{
	uint64_t pc = id * 16 | SS_PC_EXACT;

	assert_int_equal(mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1), 0);
	if (n)
		assert_int_equal(mpf_put_symbols(w, pc, sym, n), 0);
}

static void end(struct mpf_writer *w, uint64_t ns)
{
	struct mp_finish f = {.reason = MP_END_EXITED, .end_ns = ns};

	assert_int_equal(mpf_put_finish(w, &f), 0);
	assert_int_equal(mpf_close(w), 0);
}

/* ------------------------------------------------------------------ asking -- */

/* Return: the answer, to be freed; NULL with @err if it failed. */
static char *ask(const char *endpoint, const char *query, struct mp_err *err)
{
	struct recordings r = {0};
	struct frame_counts *counts = NULL;
	struct answer a = {.recordings = &r, .counts = &counts};
	struct model_options o = {0};
	struct model m;
	struct call c;
	char *text = NULL, whole[200];
	bool known;
	size_t n;
	int ret;

	assert_int_equal(recordings_add(&r, path, &known, NULL), 0);
	snprintf(whole, sizeof(whole), "/data/last/%s", endpoint);
	assert_int_equal(call_parse(&r, whole, query, &c, err), 200);
	o.filter = &c.filter;
	assert_int_equal(model_load(path, &o, &m, NULL), 0);
	a.call = &c;
	a.m = &m;
	a.out = open_memstream(&text, &n);
	assert_non_null(a.out);
	ret = c.endpoint->write(&a, err);
	assert_int_equal(fclose(a.out), 0);
	frame_counts_free(counts);
	model_free(&m);
	call_free(&c);
	recordings_free(&r);
	if (!ret)
		return text;
	free(text);
	return NULL;
}

static void answers(const char *endpoint, const char *query, const char *expected)
{
	struct mp_err err = {0};
	char *text = ask(endpoint, query, &err);

	assert_string_equal(err.what, "");
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

/* ------------------------------------------------------------------ tests -- */

/* Names that are not mangled are raw_function only; an unknown address has no name at all. */
static void test_frames(void **state)
{
	static const struct mp_symbol sym[] = {
	    {"ns::f<int>(int)", "_ZN2ns1fIiEEi", "/f.cc", 3, 4, true},
	    {"main", "main", "/m.c", 0, 0, false}};
	static const struct mp_module module = {.start = 16, .end = 32, .path = "/lib/x.so"};
	struct mpf_writer *w = begin(EM_X86_64, 0);

	(void)state;
	assert_int_equal(mpf_put_module(w, &module), 0);
	put_stack(w, 1, sym, 2);
	put_stack(w, 2, NULL, 0);
	for (int i = 0; i < 3; i++)
		put_alloc(w, &(struct mp_event){.addr = 0x1000, .size = 1, .stack = 1});
	put_alloc(w, &(struct mp_event){.addr = 0x2000, .size = 1, .stack = 2});
	end(w, 1000);
	answers("backtrace/1", "strip_template_args=true",
		"{\"frames\":[{\"address\":16,\"address_s\":\"0000000000000010\",\"count\":3,"
		"\"library\":\"x.so\",\"raw_function\":\"main\",\"source\":\"/"
		"m.c\",\"is_inline\":false},"
		"{\"address\":16,\"address_s\":\"0000000000000010\",\"count\":3,"
		"\"library\":\"x.so\",\"function\":\"ns::f<...>(int)\",\"raw_function\":\"_"
		"ZN2ns1fIiEEi\","
		"\"source\":\"/f.cc\",\"line\":3,\"column\":4,\"is_inline\":true}]}");
	answers("backtrace/2", NULL,
		"{\"frames\":[{\"address\":32,\"address_s\":\"0000000000000020\",\"count\":1,"
		"\"is_inline\":false}]}");
}

/* Blocks count for their innermost initializer; distcc's folder is not a part of the path. */
static void test_initializers(void **state)
{
	static const struct mp_symbol init = {"init",
					      "_Z41__static_initialization_and_destruction_0ii",
					      "/tmp/distccd_a1/src/a.cc",
					      12,
					      0,
					      false},
				      clone = {"clone",
					       "_Z41__static_initialization_and_destruction_0ii."
					       "constprop.0",
					       "/src/b.cc",
					       7,
					       0,
					       false},
				      plain = {"g", "_Z1gv", "/src/g.cc", 1, 0, false},
				      nowhere = {
					  "init", "_Z41__static_initialization_and_destruction_0ii",
					  NULL,	  0,
					  0,	  false};
	struct mp_symbol inside[] = {init, clone}, other = init;
	struct mpf_writer *w = begin(EM_X86_64, 0);

	(void)state;
	inside[0].is_inline = true;
	other.line = 9;
	put_stack(w, 1, &init, 1);
	put_stack(w, 2, &clone, 1);
	put_stack(w, 3, &plain, 1);
	put_stack(w, 4, &nowhere, 1);
	put_stack(w, 5, inside, 2);
	put_stack(w, 6, &other, 1);
	for (uint32_t id = 1; id <= 6; id++)
		put_alloc(w, &(struct mp_event){
				 .addr = id * 0x1000, .size = 90, .usable = 100 * id, .stack = id});
	end(w, 1000);
	answers("dynamic_constants", NULL,
		"{\"count\":1,\"size\":200,\"per_file\":{\"/src/b.cc\":{\"count\":1,\"size\":200,"
		"\"per_line\":{\"7\":{\"count\":1,\"size\":200}}}}}");
	answers(
	    "dynamic_statics", NULL,
	    "{\"count\":4,\"size\":1600,\"per_file\":{\"/src/a.cc\":{\"count\":3,\"size\":1200,"
	    "\"per_line\":{\"9\":{\"count\":1,\"size\":600},\"12\":{\"count\":2,\"size\":600}}},"
	    "\"?\":{\"count\":1,\"size\":400,\"per_line\":{\"0\":{\"count\":1,\"size\":400}}}}}");
	answers("dynamic_statics_ascii_tree", NULL,
		"SIZE       COUNT SOURCE\n"
		"  1.200 KB 3     /src/a.cc\n"
		"    600    1     ├─a.cc:9\n"
		"    600    2     └─a.cc:12\n"
		"    400    1     ?\n"
		"    400    1     └─?:0\n");
}

static void put_blocks(struct mpf_writer *w)
{
	static const struct mp_event blocks[] = {
	    {.addr = 0x1010, .size = 20, .usable = 24},
	    {.addr = 0x1030, .size = 8},
	    {.addr = 0x3010, .size = 8, .flags = EV_F_NON_MAIN},
	    {.addr = 0x2010, .size = 8, .flags = EV_F_MMAPPED},
	    {.addr = 0x4010, .size = 8, .hook = 1},
	};

	for (const struct mp_event *b = blocks; b <= LAST(blocks); b++)
		put_alloc(w, b);
}

/* Headers are those of glibc, and as long as the processor's words. */
static void test_regions(void **state)
{
	struct mp_err err = {0};
	struct mpf_writer *w = begin(EM_X86_64, 0);

	(void)state;
	put_blocks(w);
	end(w, 1000);
	answers("regions", NULL,
		"{\"main_heap_start\":4104,\"main_heap_end\":4152,\"main_heap_start_s\":\"4104\","
		"\"main_heap_end_s\":\"4152\",\"regions\":[[4104,4152],[8192,8216],[12296,12312],"
		"[16400,16408]]}");
	w = begin(EM_ARM, 0);
	put_blocks(w);
	end(w, 1000);
	answers("regions", NULL,
		"{\"main_heap_start\":4108,\"main_heap_end\":4152,\"main_heap_start_s\":\"4108\","
		"\"main_heap_end_s\":\"4152\",\"regions\":[[4108,4136],[4140,4152],[8200,8216],"
		"[12300,12312],[16400,16408]]}");
	w = begin(EM_X86_64, 2);
	end(w, 1000);
	assert_null(ask("regions", NULL, &err));
	assert_int_equal(err.exit, MP_EXIT_USAGE);
	assert_non_null(strstr(err.what, "several processes"));
}

/* Buckets are not shorter than a microsecond. */
static void test_short_timeline(void **state)
{
	struct mp_event ev = {.kind = EV_FREE, .time_ns = 2500, .addr = 0x2000, .tid = 5, .fd = -1};
	struct mpf_writer *w = begin(EM_X86_64, 0);

	(void)state;
	put_alloc(w, &(struct mp_event){.addr = 0x1000, .size = 10});
	put_alloc(w, &(struct mp_event){.addr = 0x2000, .size = 20, .time_ns = 1200});
	ev.hook = 0;
	assert_int_equal(mpf_put_event(w, &ev), 0);
	end(w, 3999);
	answers("timeline", NULL,
		"{\"xs\":[1700000000000,1700000000000,1700000000000,1700000000000,1700000000000],"
		"\"size_delta\":[10,20,0,-20,0],\"count_delta\":[1,1,0,-1,0],"
		"\"allocated_size\":[10,30,30,10,10],\"allocated_count\":[1,2,2,1,1],"
		"\"allocations\":[1,1,0,0,0],\"deallocations\":[0,0,1,0,0]}");
	answers("timeline_leaked", NULL,
		"{\"xs\":[1700000000000,1700000000000,1700000000000,1700000000000,1700000000000],"
		"\"size_delta\":[10,0,0,0,0],\"count_delta\":[1,0,0,0,0],"
		"\"allocated_size\":[10,10,10,10,10],\"allocated_count\":[1,1,1,1,1],"
		"\"allocations\":[1,0,0,0,0],\"deallocations\":[0,0,0,0,0]}");
}

/* A list that is longer than what is collected at once: the entries on both sides of the seam. */
static void test_long_list(void **state)
{
	struct mpf_writer *w = begin(EM_X86_64, 0);
	struct mp_err err = {0};
	char *text, *at;

	(void)state;
	for (uint64_t i = 0; i < 450000; i++)
		put_alloc(w, &(struct mp_event){.addr = 16 + i * 16, .size = 1, .time_ns = i});
	end(w, 450000);
	text = ask("allocations", "skip=399990&count=20", &err);
	assert_non_null(text);
	at = text;
	for (uint64_t i = 399990; i < 400010; i++) {
		char id[40];

		snprintf(id, sizeof(id), "{\"id\":%llu,", (unsigned long long)i);
		at = strstr(at, "{\"id\":");
		assert_non_null(at);
		assert_int_equal(strncmp(at, id, strlen(id)), 0);
		at++;
	}
	assert_null(strstr(at, "{\"id\":"));
	assert_non_null(strstr(at, "],\"total_count\":450000}"));
	free(text);
}

static int setup(void **state)
{
	(void)state;
	close(mkstemp(path));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_frames),    cmocka_unit_test(test_initializers),
	    cmocka_unit_test(test_regions),   cmocka_unit_test(test_short_timeline),
	    cmocka_unit_test(test_long_list),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
