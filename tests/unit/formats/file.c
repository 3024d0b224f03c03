/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events are read as they were written.  A file that is cut off anywhere, or has a flipped bit,
 * never yields a wrong event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"

#define EVENTS 3000

static char path[] = "/tmp/memprof-unit-XXXXXX", cut_path[] = "/tmp/memprof-unit-XXXXXX";
static struct mp_event events[EVENTS];
static uint64_t seed = 1;

static uint64_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 20;
}

static void make_events(void)
{
	for (int i = 0; i < EVENTS; i++) {
		struct mp_event *e = &events[i];

		memset(e, 0, sizeof(*e));
		e->kind = (uint8_t)(1 + rnd() % EV_FAULT);
		e->time_ns = (uint64_t)i * 50 + rnd() % 100;
		e->addr = rnd() % 3 ? 0x7f0000000000 + rnd() % 100000 * 16 : rnd();
		e->tid = 100 + (uint32_t)(rnd() % 4);
		e->hook = (uint16_t)(rnd() % 5);
		e->flags = rnd() % 4 ? 0 : (uint8_t)(rnd() % 32);
		e->fd = -1;
		if (e->kind == EV_FREE || e->kind == EV_REALLOC_BEGIN)
			continue;
		e->size = rnd() % 5 ? rnd() % 4096 : rnd();
		e->usable = e->size + rnd() % 40;
		e->stack = (uint32_t)(rnd() % 1000);
		if (e->kind == EV_REALLOC_END || e->kind == EV_REMAP_END || e->kind == EV_MAP)
			e->old_addr = rnd();
		if (e->kind >= EV_MAP && e->kind != EV_FAULT) {
			e->fd = (int32_t)(rnd() % 10) - 2;
			e->prot = (uint32_t)(rnd() % 8);
			e->mapflags = (uint32_t)rnd();
		}
	}
}

static const struct mp_culled culled = {.time_ns = 1u << 30,
					.stack = 2,
					.tid = 7,
					.free_tid = 8,
					.hook = 1,
					.free_hook = 2,
					.blocks = 1000000,
					.bytes = 5ull << 32,
					.usable = 6ull << 32,
					.temporary = 3,
					.temporary_bytes = 99};

static void write_file(int flush_every)
{
	static const uint64_t pc[] = {0x1000 | SS_PC_EXACT, 0x7fff00001234, 0x400123};
	struct mp_info info = {.pid = 42, .machine = 62, .executable = "/bin/x", .cmdline = "x y"};
	struct mp_hook_info hook = {"malloc", "libc.so.6", 1};
	struct mp_symbol sym = {.function = "f(int)", .raw_function = "_Z1fi", .source = NULL};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	assert_int_equal(mpf_put_hook(w, &hook), 0);
	assert_int_equal(mpf_put_stack(w, 1, SS_STACK_COMPLETE, pc, 3), 0);
	assert_int_equal(mpf_put_stack(w, 2, SS_STACK_COMPLETE, pc + 1, 2), 0);
	for (int i = 0; i < EVENTS; i++) {
		assert_int_equal(mpf_put_event(w, &events[i]), 0);
		if (i % flush_every == 0)
			assert_int_equal(mpf_flush(w), 0);
	}
	assert_int_equal(mpf_put_symbols(w, pc[0], &sym, 1), 0);
	assert_int_equal(mpf_put_culled(w, &culled), 0);
	assert_int_equal(mpf_put_mark(w, 77, "deployed"), 0);
	assert_int_equal(mpf_close(w), 0);
}

/* Checks that each event is the one that was written.  Return: the number of events read. */
static int read_file(const char *from, bool *truncated, bool *corrupt)
{
	struct mpf_reader *r;
	struct mpf_item it;
	struct mp_info info;
	struct mp_err err;
	int n = 0, sums = 0, ret;

	*truncated = *corrupt = false;
	if (mpf_open(from, &r, &info, &err))
		return -1;
	assert_int_equal(info.pid, 42);
	assert_string_equal(info.cmdline, "x y");
	while ((ret = mpf_next(r, &it, &err)) > 0) {
		if (it.kind == MPF_STACK) {
			assert_int_equal(it.stack.pc[it.stack.n - 1], 0x400123);
			assert_int_equal(it.stack.n, it.stack.id == 1 ? 3 : 2);
			if (it.stack.id == 1)
				assert_true(it.stack.pc[0] == (0x1000 | SS_PC_EXACT));
		}
		if (it.kind == MPF_SYMBOLS) {
			assert_string_equal(it.symbols.at[0].function, "f(int)");
			assert_null(it.symbols.at[0].source);
		}
		if (it.kind == MPF_CULLED)
			assert_memory_equal(&it.culled, &culled, sizeof(culled));
		if (it.kind == MPF_MARK) {
			assert_int_equal(it.mark.time_ns, 77);
			assert_string_equal(it.mark.name, "deployed");
		}
		sums += it.kind == MPF_CULLED || it.kind == MPF_MARK;
		if (it.kind != MPF_EVENT)
			continue;
		assert_in_range(n, 0, EVENTS - 1);
		assert_memory_equal(&it.event, &events[n], sizeof(it.event));
		n++;
	}
	*corrupt = ret < 0;
	*truncated = mpf_truncated(r) != NULL;
	assert_true(*corrupt || *truncated || sums == 2);
	mpf_reader_free(r);
	return n;
}

static void round_trip(void **state)
{
	bool truncated, corrupt;
	struct stat st;

	(void)state;
	write_file(500);
	assert_int_equal(read_file(path, &truncated, &corrupt), EVENTS);
	assert_false(truncated || corrupt);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static char *slurp(size_t *n)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	char *p;

	assert_int_equal(fstat(fd, &st), 0);
	p = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, p, (size_t)st.st_size), st.st_size);
	close(fd);
	*n = (size_t)st.st_size;
	return p;
}

static void put_cut(const char *p, size_t n)
{
	int fd = open(cut_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, p, n), (ssize_t)n);
	close(fd);
}

static void cut_everywhere(void **state)
{
	int last = -1, whole = 0;
	size_t n;
	char *p;

	(void)state;
	write_file(300);
	p = slurp(&n);
	for (size_t at = 0; at < n; at += 7) {
		bool truncated, corrupt;
		int got;

		put_cut(p, at);
		got = read_file(cut_path, &truncated, &corrupt);
		assert_false(corrupt);
		assert_true(got < 0 || truncated);
		assert_true(got >= last); /* more bytes, never fewer events */
		last = got;
		whole += got > 0;
	}
	assert_true(whole > 100);
	free(p);
}

/* read_file() checks that every event that can still be read is right. */
static void flipped_bits(void **state)
{
	size_t n;
	char *p;

	(void)state;
	write_file(300);
	p = slurp(&n);
	for (int i = 0; i < 400; i++) {
		size_t at = 200 + rnd() % (n - 200);
		bool truncated, corrupt;
		int got;

		p[at] ^= (char)(1 << rnd() % 8);
		put_cut(p, n);
		got = read_file(cut_path, &truncated, &corrupt);
		assert_true(got < EVENTS || truncated);
		write_file(300);
		free(p);
		p = slurp(&n);
	}
	free(p);
}

static int setup(void **state)
{
	(void)state;
	close(mkstemp(path));
	close(mkstemp(cut_path));
	make_events();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(cut_path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),
					   cmocka_unit_test(cut_everywhere),
					   cmocka_unit_test(flipped_bits)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
