/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maps, made of looks at the mappings and of calls of mmap(), munmap() and mremap(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/model.h"
#include "server/answers/frames.h"
#include "server/answers/map_list.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/recordings.h"

#define S 1000000000ull

static char path[] = "/tmp/memprof-unit-XXXXXX";
static struct mpf_writer *w;
static struct model m;
static struct map_list maps;

/* ------------------------------------------------------------------ recordings -- */

static void begin(void)
{
	static const struct mp_hook_info hooks[] = {{"mmap", "libc.so.6", SS_HOOK_MMAP},
						    {"malloc", "libc.so.6", SS_HOOK_ALLOC}};
	static const struct mp_symbol symbols[] = {
	    {.function = "load_table", .source = "/src/table.c"},
	    {.function = "make_cache", .source = "/src/cache.c"}};
	struct mp_info info = {.pid = 7, .start_unix_ns = 1700000000 * S};

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mpf_put_hook(w, &hooks[i]), 0);
	for (uint32_t id = 1; id <= 2; id++) {
		uint64_t pc = (0x400000 + id) | SS_PC_EXACT;

		assert_int_equal(mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1), 0);
		assert_int_equal(mpf_put_symbols(w, pc, &symbols[id - 1], 1), 0);
	}
}

static void call(uint8_t kind, uint64_t time_ns, uint64_t addr, uint64_t size, uint32_t stack)
{
	struct mp_event ev = {.kind = kind,
			      .time_ns = time_ns,
			      .addr = addr,
			      .size = size,
			      .usable = size,
			      .stack = stack,
			      .tid = 100 + stack,
			      .fd = -1,
			      .prot = PROT_READ | PROT_WRITE,
			      .mapflags = MAP_PRIVATE | MAP_ANONYMOUS};

	assert_int_equal(mpf_put_event(w, &ev), 0);
}

/* A mapping of the look at @time_ns, all of whose pages are resident. */
static void seen(uint64_t time_ns, uint64_t start, uint64_t end, const char *name)
{
	struct mp_map_usage u = {.time_ns = time_ns,
				 .start = start,
				 .end = end,
				 .rss = end - start,
				 .anonymous = (end - start) / 2,
				 .prot = PROT_READ,
				 .path = name};

	assert_int_equal(mpf_put_map_usage(w, &u), 0);
}

static void end(uint64_t time_ns)
{
	struct mp_finish finish = {.reason = 1, .end_ns = time_ns};

	assert_int_equal(mpf_put_finish(w, &finish), 0);
	assert_int_equal(mpf_close(w), 0);
	assert_int_equal(model_load(path, NULL, &m, NULL), 0);
	assert_int_equal(map_list_make(&m, &maps, NULL), 0);
}

static int teardown(void **state)
{
	(void)state;
	map_list_free(&maps);
	model_free(&m);
	return 0;
}

static void is_map(uint32_t id, uint64_t start, uint64_t until, uint64_t born_ns, uint64_t died_ns)
{
	assert_true(id < maps.at.n);
	assert_int_equal(maps.at.at[id].start, start);
	assert_int_equal(maps.at.at[id].end, until);
	assert_int_equal(maps.at.at[id].born_ns, born_ns);
	assert_int_equal(maps.at.at[id].died_ns, died_ns);
}

/* ------------------------------------------------------------------ looks -- */

static void older(void **state)
{
	(void)state;
	begin();
	seen(1, 0x1000, 0x3000, "[heap]");
	seen(1, 0x8000, 0x9000, "/lib/a.so");
	seen(10 * S, 0x1000, 0x5000, "[heap]");
	seen(10 * S, 0x8000, 0x9000, "/lib/b.so");
	seen(20 * S, 0x1000, 0x2000, "[heap]");
	end(25 * S);
	assert_int_equal(maps.at.n, 3);
	/* The heap grew and shrank; another file is another map. */
	is_map(0, 0x1000, 0x5000, 1, MAP_LIVES);
	is_map(1, 0x8000, 0x9000, 1, 10 * S);
	is_map(2, 0x8000, 0x9000, 10 * S, 20 * S);
	assert_false(maps.at.at[0].source.known);
	assert_false(maps.at.at[1].ended.known);
	assert_string_equal(maps.at.at[2].name, "/lib/b.so");
	assert_int_equal(maps.at.at[0].peak_rss, 0x4000);
	assert_int_equal(maps.at.at[0].uses.n, 3);
	assert_int_equal(maps.at.at[0].uses.at[1].size, 0x4000);
	assert_int_equal(maps.at.at[0].uses.at[1].anonymous, 0x2000);
	assert_int_equal(maps.at.at[0].uses.at[2].time_ns, 20 * S);
}

static void unmapped_older(void **state)
{
	(void)state;
	begin();
	seen(1, 0x1000, 0x3000, "/data");
	call(EV_UNMAP, 4 * S, 0x1000, 0x2000, 1);
	seen(10 * S, 0x8000, 0x9000, "/lib/a.so");
	end(25 * S);
	assert_int_equal(maps.at.n, 2);
	is_map(0, 0x1000, 0x3000, 1, 4 * S);
	assert_true(maps.at.at[0].ended.known);
	assert_int_equal(maps.at.at[0].ended.tid, 101);
}

/* ------------------------------------------------------------------ calls -- */

static void calls(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x2000, 1);
	call(EV_MAP, 3 * S, 0x200000, 0x1000, 2); /* for half a second */
	call(EV_UNMAP, 3 * S + S / 2, 0x200000, 0x1000, 2);
	call(EV_MAP, 4 * S, 0x200000, 0x1000, 2); /* for two seconds, without a look */
	call(EV_UNMAP, 6 * S, 0x200000, 0x1000, 2);
	seen(10 * S, 0x100000, 0x102000, "");
	call(EV_UNMAP, 12 * S, 0x100000, 0x2000, 1);
	call(EV_MAP, 13 * S, 0x100000, 0x2000, 2); /* another at the same address */
	seen(20 * S, 0x100000, 0x101000, "");	   /* the second page has no memory */
	end(25 * S);
	assert_int_equal(maps.at.n, 3);
	is_map(0, 0x100000, 0x102000, 2 * S, 12 * S);
	is_map(1, 0x200000, 0x201000, 4 * S, 6 * S);
	is_map(2, 0x100000, 0x102000, 13 * S, MAP_LIVES);
	assert_true(maps.at.at[0].source.known);
	assert_int_equal(maps.at.at[0].source.stack, 1);
	assert_int_equal(maps.at.at[2].source.stack, 2);
	assert_string_equal(maps.at.at[0].name, "[anon:mmap]");
	assert_int_equal(maps.at.at[0].peak_rss, 0x2000);
	assert_int_equal(maps.at.at[1].uses.n, 0);
	assert_int_equal(maps.at.at[2].uses.n, 1);
	assert_int_equal(maps.at.at[2].uses.at[0].size, 0x2000);
	assert_int_equal(maps.at.at[2].uses.at[0].rss, 0x1000);
}

/* A map that has lost its memory is not gone. */
static void without_memory(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x2000, 1);
	seen(10 * S, 0x100000, 0x102000, "");
	seen(20 * S, 0x8000, 0x9000, "/lib/a.so");
	end(25 * S);
	assert_int_equal(maps.at.n, 2);
	is_map(0, 0x100000, 0x102000, 2 * S, MAP_LIVES);
	assert_int_equal(maps.at.at[0].uses.n, 2);
	assert_int_equal(maps.at.at[0].uses.at[1].rss, 0);
	assert_int_equal(maps.at.at[0].uses.at[1].size, 0x2000);
}

/* The kernel shows two neighbours as one mapping, then one of them alone; and a third with the end of one
 * that is older than the recording. */
static void joined(void **state)
{
	(void)state;
	begin();
	seen(1, 0x300000, 0x301000, "");
	call(EV_MAP, 2 * S, 0x200000, 0x1000, 1);
	call(EV_MAP, 3 * S, 0x1ff000, 0x800, 2); /* a whole page */
	call(EV_MAP, 4 * S, 0x301000, 0x1000, 2);
	seen(10 * S, 0x1ff000, 0x201000, "");
	seen(10 * S, 0x300000, 0x302000, "");
	call(EV_UNMAP, 12 * S, 0x200000, 0x1000, 1);
	seen(20 * S, 0x1ff000, 0x200000, "");
	seen(20 * S, 0x300000, 0x302000, "");
	end(25 * S);
	assert_int_equal(maps.at.n, 4);
	is_map(0, 0x300000, 0x301000, 1, MAP_LIVES);
	is_map(1, 0x200000, 0x201000, 2 * S, 12 * S);
	is_map(2, 0x1ff000, 0x200000, 3 * S, MAP_LIVES);
	is_map(3, 0x301000, 0x302000, 4 * S, MAP_LIVES);
	assert_int_equal(maps.at.at[0].uses.n, 1);
	assert_int_equal(maps.at.at[1].uses.n, 0);
	assert_int_equal(maps.at.at[2].uses.n, 1);
	assert_int_equal(maps.at.at[2].uses.at[0].time_ns, 20 * S);
	assert_int_equal(maps.at.at[2].peak_rss, 0x1000);
	assert_int_equal(maps.at.at[3].uses.n, 0);
}

static void parts(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x8000, 1);
	call(EV_UNMAP, 2 * S + 1, 0x100000, 0x2000, 1); /* cut off before a look */
	call(EV_UNMAP, 2 * S + 2, 0x106000, 0x2000, 1);
	seen(10 * S, 0x102000, 0x106000, "");
	call(EV_UNMAP, 11 * S, 0x103000, 0x1000, 1); /* a hole */
	seen(20 * S, 0x102000, 0x103000, "");
	seen(20 * S, 0x104000, 0x106000, "");
	call(EV_UNMAP, 21 * S, 0x104000, 0x2000, 1);
	call(EV_UNMAP, 22 * S, 0x101000, 0x2000, 2);
	end(25 * S);
	assert_int_equal(maps.at.n, 1);
	is_map(0, 0x102000, 0x106000, 2 * S, 22 * S);
	assert_int_equal(maps.at.at[0].ended.tid, 102);
	assert_int_equal(maps.at.at[0].uses.at[1].size, 0x3000);
}

static void failed(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x8000, 1);
	call(EV_UNMAP, 3 * S, 0x100000, 0x8000, 1);
	call(EV_UNMAP_FAILED, 3 * S + 1, 0, 0, 1);
	call(EV_REMAP_BEGIN, 4 * S, 0x100000, 0x8000, 2);
	call(EV_REMAP_END, 4 * S + 1, 0, 0x9000, 2);
	end(25 * S);
	assert_int_equal(maps.at.n, 1);
	is_map(0, 0x100000, 0x108000, 2 * S, MAP_LIVES);
}

/* Another thread gets the memory before the first one is known to have succeeded. */
static void replaced(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x2000, 1);
	call(EV_UNMAP, 5 * S, 0x100000, 0x2000, 1);
	call(EV_MAP, 6 * S, 0x101000, 0x1000, 2);
	end(25 * S);
	assert_int_equal(maps.at.n, 2);
	is_map(0, 0x100000, 0x102000, 2 * S, 5 * S);
	is_map(1, 0x101000, 0x102000, 6 * S, MAP_LIVES);
}

static void moved(void **state)
{
	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x2000, 1);
	call(EV_REMAP_BEGIN, 4 * S, 0x100000, 0x2000, 2);
	call(EV_REMAP_END, 4 * S + 1, 0x300000, 0x4000, 2);
	end(25 * S);
	assert_int_equal(maps.at.n, 2);
	is_map(0, 0x100000, 0x102000, 2 * S, 4 * S + 1);
	is_map(1, 0x300000, 0x304000, 4 * S + 1, MAP_LIVES);
	assert_int_equal(maps.at.at[1].source.tid, 102);
}

/* ------------------------------------------------------------------ blocks in a map -- */

static void blocks(void **state)
{
	struct mp_event ev = {
	    .kind = EV_ALLOC, .size = 16, .usable = 16, .hook = 1, .tid = 5, .fd = -1};
	struct mp_err err = {0};
	struct filter f;
	struct model_options o = {.filter = &f};
	struct model some;

	(void)state;
	begin();
	call(EV_MAP, 2 * S, 0x100000, 0x2000, 1);
	ev.time_ns = 3 * S;
	ev.addr = 0x100100;
	assert_int_equal(mpf_put_event(w, &ev), 0);
	ev.addr = 0x102000; /* behind it */
	assert_int_equal(mpf_put_event(w, &ev), 0);
	call(EV_UNMAP, 5 * S, 0x100000, 0x2000, 1);
	ev.time_ns = 6 * S; /* after it */
	ev.addr = 0x100200;
	assert_int_equal(mpf_put_event(w, &ev), 0);
	end(25 * S);
	filter_init(&f);
	assert_int_equal(map_list_select(path, 0, &f, &err), 0);
	assert_int_equal(model_load(path, &o, &some, &err), 0);
	assert_int_equal(some.sums.total.allocations, 1);
	assert_int_equal(some.unfiltered.total.allocations, 3);
	model_free(&some);
	filter_free(&f);
	filter_init(&f);
	assert_int_equal(map_list_select(path, 1, &f, &err), -EINVAL);
	assert_string_equal(err.what, "from_map: there is no map 1, but 1 maps");
	filter_free(&f);
}

/* ------------------------------------------------------------------ answers -- */

/* Return: the ids in the answer to maps?@query, as in "3 1 "; static. */
static const char *ids(const char *query)
{
	static char list[256];
	struct recordings r = {0};
	struct frame_counts *counts = NULL;
	struct mp_err err = {0};
	struct call c;
	struct answer a = {.call = &c, .recordings = &r, .m = &m, .counts = &counts};
	char *text = NULL, *at;
	size_t size;
	bool known;

	*list = 0;
	assert_int_equal(recordings_add(&r, path, &known, &err), 0);
	assert_int_equal(call_parse(&r, "/data/last/maps", query, &c, &err), 200);
	a.out = open_memstream(&text, &size);
	assert_int_equal(c.endpoint->write(&a, &err), 0);
	fclose(a.out);
	for (at = text; (at = strstr(at, "{\"id\":")); at += 6)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%ld ",
			 strtol(at + 6, NULL, 10));
	free(text);
	frame_counts_free(counts);
	call_free(&c);
	recordings_free(&r);
	return list;
}

static void conditions(void **state)
{
	(void)state;
	begin();
	seen(1, 0x1000, 0x3000, "/lib/a.so");	  /* 0: until 10 s */
	call(EV_MAP, 2 * S, 0x100000, 0x4000, 1); /* 1: until 12 s */
	call(EV_MAP, 3 * S, 0x200000, 0x1000, 2); /* 2 */
	seen(10 * S, 0x100000, 0x101000, "");
	seen(10 * S, 0x200000, 0x201000, "[anon:jemalloc_pg_data]");
	call(EV_UNMAP, 12 * S, 0x100000, 0x4000, 2);
	call(EV_MAP, 14 * S, 0x300000, 0x1000, 1); /* 3: no look has it */
	end(20 * S);
	assert_string_equal(ids(""), "0 1 2 3 ");
	assert_string_equal(ids("sort_by=size"), "2 3 0 1 ");
	assert_string_equal(ids("sort_by=size&order=dsc&count=1"), "1 ");
	assert_string_equal(ids("sort_by=address&skip=1"), "1 2 3 ");
	assert_string_equal(ids("sort_by=peak_rss"), "3 1 2 0 ");
	assert_string_equal(ids("id=2&lifetime=only_temporary"), "2 ");
	assert_string_equal(ids("id=9"), "");
	assert_string_equal(ids("lifetime=only_leaked"), "2 3 ");
	assert_string_equal(ids("lifetime=only_temporary"), "0 1 ");
	assert_string_equal(ids("from=1700000002000&to=1700000003000"), "1 2 ");
	assert_string_equal(ids("alive_at=50%25"), "1 2 ");
	assert_string_equal(ids("alive_at=5s&alive_at_2=11s"), "1 2 ");
	assert_string_equal(ids("alive_at=1700000013000"), "2 ");
	assert_string_equal(ids("lifetime_min=10s"), "1 2 ");
	assert_string_equal(ids("lifetime_max=10s"), "0 1 3 ");
	assert_string_equal(ids("size_min=4097"), "0 1 ");
	assert_string_equal(ids("address_min=1048576&address_max=2097152"), "1 2 ");
	assert_string_equal(ids("peak_rss_min=4096"), "0 1 2 ");
	assert_string_equal(ids("peak_rss_max=4096"), "1 2 ");
	assert_string_equal(ids("jemalloc=only_true"), "2 ");
	assert_string_equal(ids("bytehound=only_false"), "0 1 2 3 ");
	assert_string_equal(ids("bytehound=only_true"), "");
	assert_string_equal(ids("writable=only_true"), "1 2 3 ");
	assert_string_equal(ids("readable=only_false"), "");
	assert_string_equal(ids("backtraces=1"), "1 3 ");
	assert_string_equal(ids("deallocation_backtraces=2"), "1 ");
	/* Maps without a stack fail what wants something, and pass what rejects something. */
	assert_string_equal(ids("function_regex=load"), "1 3 ");
	assert_string_equal(ids("negative_function_regex=load"), "0 2 ");
	assert_string_equal(ids("source_regex=cache.c&function_regex=cache"), "2 ");
	assert_string_equal(ids("negative_source_regex=cache"), "0 1 3 ");
	assert_string_equal(ids("backtrace_depth_max=1"), "1 2 3 ");
	assert_string_equal(ids("backtrace_depth_min=2"), "");
	assert_string_equal(ids("custom_filter="), "0 1 2 3 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(older, teardown),
	    cmocka_unit_test_teardown(unmapped_older, teardown),
	    cmocka_unit_test_teardown(calls, teardown),
	    cmocka_unit_test_teardown(without_memory, teardown),
	    cmocka_unit_test_teardown(joined, teardown),
	    cmocka_unit_test_teardown(parts, teardown),
	    cmocka_unit_test_teardown(failed, teardown),
	    cmocka_unit_test_teardown(replaced, teardown),
	    cmocka_unit_test_teardown(moved, teardown),
	    cmocka_unit_test_teardown(blocks, teardown),
	    cmocka_unit_test_teardown(conditions, teardown),
	};
	int ret;

	close(mkstemp(path));
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
