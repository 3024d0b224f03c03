/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events are read as they were written, and predictable ones need little space.  A file that is cut
 * off anywhere, or has a flipped bit, never yields a wrong event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/record.h"
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

/* The second one differs from the first in everything, in both directions. */
static const struct mp_culled culled[] = {
    {.size = 5000,
     .stack = 2,
     .tid = 7,
     .free_tid = 8,
     .hook = 1,
     .free_hook = UINT16_MAX,
     .process = 3,
     .flags = MP_CULLED_TEMPORARY | MP_CULLED_RESIZED | EV_F_NON_MAIN,
     .weight = 15,
     .first_ns = 1u << 30,
     .last_ns = 1ull << 40,
     .blocks = 1000003,
     .usable = 5016ull * 1000003,
     .lifetime = {[0] = 1000000, [5] = 2, [31] = 1}},
    {.size = 1ull << 40,
     .stack = 1,
     .tid = 9,
     .free_tid = 6,
     .hook = 0,
     .free_hook = 2,
     .flags = MP_CULLED_CONTINUED | EV_F_MMAPPED,
     .first_ns = 5,
     .last_ns = 5,
     .blocks = UINT32_MAX,
     .usable = (1ull << 40) * UINT32_MAX,
     .lifetime = {[31] = UINT32_MAX}},
};
static const struct mp_section sections[] = {
    {1000, 10, 1, 20, 2, 3, 30, 2, 20}, {3000, 1ull << 40, 7, 1ull << 41, 8, 10, 1ull << 50, 4, 5}};
static const struct mp_stack_peak stack_peak = {2, 1ull << 33, 1234567, 1ull << 32, 77};

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
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mpf_put_culled(w, &culled[i]), 0);
		assert_int_equal(mpf_put_section(w, &sections[i]), 0);
	}
	assert_int_equal(mpf_put_stack_peak(w, &stack_peak), 0);
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
	int n = 0, sums = 0, ncull = 0, nsections = 0, ret;

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
			assert_memory_equal(&it.culled, &culled[ncull++ % 2], sizeof(*culled));
		if (it.kind == MPF_SECTION)
			assert_memory_equal(&it.section, &sections[nsections++ % 2],
					    sizeof(*sections));
		if (it.kind == MPF_STACK_PEAK)
			assert_memory_equal(&it.stack_peak, &stack_peak, sizeof(stack_peak));
		if (it.kind == MPF_MARK) {
			assert_int_equal(it.mark.time_ns, 77);
			assert_string_equal(it.mark.name, "deployed");
		}
		sums += it.kind == MPF_CULLED || it.kind == MPF_SECTION ||
			it.kind == MPF_STACK_PEAK || it.kind == MPF_MARK;
		if (it.kind != MPF_EVENT)
			continue;
		assert_in_range(n, 0, EVENTS - 1);
		assert_memory_equal(&it.event, &events[n], sizeof(it.event));
		n++;
	}
	*corrupt = ret < 0;
	*truncated = mpf_truncated(r) != NULL;
	assert_true(*corrupt || *truncated || sums == 6);
	mpf_reader_free(r);
	return n;
}

/* A view: in a file that is already open, read by its index.  A variance that is none is refused. */
static int read_view(double variance, struct mp_activity *of_stack, struct mp_activity *of_thread)
{
	struct mp_activity stack = {0, 1ull << 40, 1ull << 50, 7, 9, variance},
			   thread = {77, 3, 4, 2, 0, 0};
	struct mp_info info = {.pid = 42, .executable = "/bin/x", .cmdline = "x"};
	struct mpf_writer *w;
	struct mpf_reader *r;
	struct mpf_item it;
	int ret, fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(mpf_create_in(fd, "view", &info, &w, NULL), 0);
	mpf_begin_index(w);
	mpf_put_activity(w, &stack, false);
	mpf_put_activity(w, &thread, true);
	mpf_end_index(w);
	assert_int_equal(mpf_close(w), 0);
	assert_int_equal(mpf_open(path, &r, &info, NULL), 0);
	assert_int_equal(info.pid, 42);
	assert_true(mpf_seek_index(r));
	while ((ret = mpf_next(r, &it, NULL)) > 0) {
		if (it.kind == MPF_ACTIVITY)
			*of_stack = it.activity;
		if (it.kind == MPF_THREAD_ACTIVITY)
			*of_thread = it.activity;
	}
	mpf_reader_free(r);
	return ret;
}

static void activity(void **state)
{
	struct mp_activity stack = {0}, thread = {0};

	(void)state;
	assert_int_equal(read_view(1234.5, &stack, &thread), 0);
	assert_int_equal(stack.allocations, 1ull << 40);
	assert_int_equal(stack.allocated_bytes, 1ull << 50);
	assert_int_equal(stack.temporary, 7);
	assert_int_equal(stack.temporary_bytes, 9);
	assert_true(stack.live_variance == 1234.5);
	assert_int_equal(thread.id, 77);
	assert_int_equal(thread.allocations, 3);
	assert_int_equal(thread.allocated_bytes, 4);
	assert_int_equal(thread.temporary, 2);
	assert_true(read_view(-1, &stack, &thread) < 0);
	assert_true(read_view(NAN, &stack, &thread) < 0);
	assert_true(read_view(INFINITY, &stack, &thread) < 0);
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

/* More events than a chunk has, of more blocks than a chunk knows, by a simple allocator. */
#define MANY	  900000
#define MANY_LIVE 300000
#define CLASSES	  40

struct program {
	uint64_t live[MANY_LIVE], freed[CLASSES][64];
	uint32_t nlive, nfreed[CLASSES];
	uint64_t top[3], time_ns;
	struct mp_event begun; /* a realloc is under way */
};

static uint64_t get_block(struct program *p, uint64_t size)
{
	uint64_t class = size / 16, region = rnd() % 100 ? 0 : 1 + rnd() % 2;

	if (class < CLASSES && p->nfreed[class] && rnd() % 8)
		return p->freed[class][--p->nfreed[class]];
	p->top[region] += (size + 23) & ~(uint64_t)15;
	return ((region << 44) + 0x100000000000 + p->top[region]) |
	       (rnd() % 5000 ? 0 : rnd() << 48);
}

static void put_back(struct program *p, uint64_t addr)
{
	uint64_t class = rnd() % CLASSES;

	if (p->nfreed[class] < 64)
		p->freed[class][p->nfreed[class]++] = addr;
}

/* Sizes and stacks that are often, but not always, as predicted. */
static void fill(struct program *p, struct mp_event *e)
{
	e->stack = (uint32_t)(rnd() % 4 ? 1 + rnd() % 20 : rnd() % 10000);
	e->size = rnd() % 3 ? e->stack % 50 * 12 : rnd() % 1000;
	if (rnd() % 1000 == 0)
		e->size = rnd() << rnd() % 20;
	e->usable = (e->size + 23) / 16 * 16 - 8;
	if (rnd() % 100 == 0)
		e->usable = e->size + rnd() % 10000 - (e->size > 5000 ? 3000 : 0);
	if (rnd() % 50 == 0 && e->size < MPR_WEIGHT_MAX_SIZE)
		e->weight = (uint8_t)(1 + rnd() % 15);
	e->addr = rnd() % 2000 ? get_block(p, e->size) : 0;
}

static void end_block(struct program *p, struct mp_event *e)
{
	uint32_t i = rnd() % 3 ? p->nlive - 1 - (uint32_t)(rnd() % (p->nlive < 9 ? p->nlive : 9))
			       : (uint32_t)(rnd() % p->nlive);

	e->kind = rnd() % 10 ? EV_FREE : EV_REALLOC_BEGIN;
	e->addr = rnd() % 500 ? p->live[i] : rnd();
	p->live[i] = p->live[--p->nlive];
	if (e->kind == EV_FREE && rnd() % 9 == 0) {
		e->flags |= EV_F_STACK;
		e->stack = (uint32_t)(rnd() % 100000);
	}
	if (e->kind == EV_REALLOC_BEGIN)
		p->begun = *e;
	else
		put_back(p, e->addr);
}

static void end_realloc(struct program *p, struct mp_event *e)
{
	e->kind = EV_REALLOC_END;
	fill(p, e);
	e->old_addr = rnd() % 50 ? p->begun.addr : rnd();
	if (rnd() % 2)
		e->addr = e->old_addr;
	p->begun.kind = 0;
}

static void next_event(struct program *p, struct mp_event *e)
{
	memset(e, 0, sizeof(*e));
	if (rnd() % 3)
		p->time_ns += rnd() % 100 ? rnd() % 300 : rnd() >> rnd() % 40;
	e->time_ns = rnd() % 100 || p->time_ns < 1000 ? p->time_ns : p->time_ns - rnd() % 1000;
	e->tid = 100 + (uint32_t)(rnd() % 50 == 0);
	e->fd = -1;
	if (p->begun.kind && rnd() % 4) {
		end_realloc(p, e);
	} else if (p->nlive == MANY_LIVE || (p->nlive && rnd() % 9 < 3)) {
		end_block(p, e);
	} else if (rnd() % 1000 == 0) {
		e->kind = EV_MAP;
		e->addr = rnd();
		e->size = e->usable = rnd();
	} else {
		e->kind = EV_ALLOC;
		fill(p, e);
	}
	if (p->nlive < MANY_LIVE && (e->kind == EV_ALLOC || e->kind == EV_REALLOC_END))
		p->live[p->nlive++] = e->addr;
	e->hook = rnd() % 30 ? e->kind : 9;
	if (rnd() % 3 == 0)
		e->flags |= 1;
}

static void restart(struct program *p)
{
	memset(p, 0, sizeof(*p));
	seed = 2;
}

static struct mpf_writer *create(bool behind)
{
	struct mp_info info = {.executable = "", .cmdline = ""};
	struct mpf_writer *w;

	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	if (behind)
		assert_int_equal(mpf_write_behind(w), 0);
	return w;
}

static void put_many(struct program *p, struct mpf_writer *w)
{
	struct mp_event e;

	restart(p);
	for (int i = 0; i < MANY; i++) {
		next_event(p, &e);
		assert_int_equal(mpf_put_event(w, &e), 0);
		if (i % 1000 == 0)
			assert_int_equal(mpf_put_mark(w, (uint64_t)i, "mark"), 0);
		if (i == MANY / 2 || i == MANY / 2 + 1)
			assert_int_equal(mpf_flush(w), 0);
	}
}

static void many_events(void **state)
{
	struct program *p = test_malloc(sizeof(*p));
	struct mpf_writer *w = create(false);
	struct mpf_reader *r;
	struct mpf_item it;
	struct mp_info info;
	struct mp_event e;
	int n = 0;

	(void)state;
	put_many(p, w);
	assert_int_equal(mpf_close(w), 0);
	restart(p);
	assert_int_equal(mpf_open(path, &r, &info, NULL), 0);
	while (mpf_next(r, &it, NULL) > 0) {
		if (it.kind == MPF_MARK) {
			assert_int_equal(it.mark.time_ns, n - 1);
			continue;
		}
		assert_int_equal(it.kind, MPF_EVENT);
		next_event(p, &e);
		assert_memory_equal(&it.event, &e, sizeof(e));
		n++;
	}
	assert_int_equal(n, MANY);
	assert_null(mpf_truncated(r));
	mpf_reader_free(r);
	test_free(p);
}

/* Chunks of all types, large ones and empty columns.  Return: the file's bytes. */
static char *write_all_types(struct program *p, bool behind, size_t *n)
{
	static const char data[1000] = "of a binary";
	struct mp_binary binary = {
	    .path = "/b", .size = 3 * sizeof(data), .data = data, .n = sizeof(data)};
	struct mpf_writer *w = create(behind);
	struct stat st;

	put_many(p, w);
	assert_int_equal(mpf_begin_index(w), 0);
	for (uint32_t i = 0; i < 200000; i++)
		assert_int_equal(mpf_put_live(w, i, i * 7, i % 9), 0);
	assert_int_equal(mpf_end_index(w), 0);
	assert_int_equal(mpf_put_mark(w, 1, "after the index"), 0);
	assert_int_equal(mpf_flush(w), 0);
	assert_int_equal(fstat(mpf_descriptor(w), &st), 0);
	assert_int_equal(mpf_bytes(w), st.st_size);
	for (; binary.offset < binary.size; binary.offset += binary.n)
		assert_int_equal(mpf_put_binary(w, &binary), 0);
	assert_int_equal(mpf_close(w), 0);
	return slurp(n);
}

static void same_behind(void **state)
{
	struct program *p = test_malloc(sizeof(*p));
	size_t n, nbehind;
	char *here = write_all_types(p, false, &n), *behind = write_all_types(p, true, &nbehind);

	(void)state;
	assert_int_equal(n, nbehind);
	assert_memory_equal(here, behind, n);
	free(here);
	free(behind);
	test_free(p);
}

/* Return: a writer whose disk is full from now on. */
static struct mpf_writer *create_full(void)
{
	struct mpf_writer *w = create(true);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(full >= 0);
	assert_int_equal(dup2(full, mpf_descriptor(w)), mpf_descriptor(w));
	close(full);
	return w;
}

static void error_behind(void **state)
{
	struct mp_event e = {.kind = EV_FREE, .fd = -1};
	struct mpf_writer *w = create_full();
	int put = 0;

	(void)state;
	assert_int_equal(mpf_put_event(w, &e), 0);
	assert_int_equal(mpf_close(w), -ENOSPC);

	w = create_full();
	assert_int_equal(mpf_put_event(w, &e), 0);
	assert_int_equal(mpf_flush(w), -ENOSPC);
	assert_int_equal(mpf_put_mark(w, 1, "m"), -ENOSPC);
	assert_int_equal(mpf_close(w), -ENOSPC);

	w = create_full();
	while (!mpf_put_event(w, &e))
		assert_in_range(++put, 0, MANY);
	assert_int_equal(mpf_close(w), -ENOSPC);
}

/* A reader can begin with any chunk: no event refers to a block of an earlier one, also if that has the
 * same number and address. */
static void chunk_alone(void **state)
{
	struct mp_info info = {.executable = "", .cmdline = ""};
	struct mp_event e = {.fd = -1, .tid = 1, .size = 40, .usable = 40};
	struct mpf_writer *w;
	struct mpf_reader *r;
	struct mpf_item it;

	(void)state;
	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	for (int chunk = 0; chunk < 2; chunk++) {
		for (uint64_t i = 1; i <= 3; i++) {
			e.kind = EV_ALLOC;
			e.addr = 0x7f0000000000 + i * i * 4096;
			assert_int_equal(mpf_put_event(w, &e), 0);
		}
		e.kind = EV_REALLOC_BEGIN;
		assert_int_equal(mpf_put_event(w, &e), 0);
		assert_int_equal(mpf_flush(w), 0);
	}
	assert_int_equal(mpf_close(w), 0);
	assert_int_equal(mpf_open(path, &r, &info, NULL), 0);
	mpf_skip_to_tail(r, 1);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(mpf_next(r, &it, NULL), 1);
		assert_int_equal(it.event.addr, 0x7f0000000000 + i * i * 4096);
	}
	assert_int_equal(mpf_next(r, &it, NULL), 1);
	assert_int_equal(it.event.addr, e.addr);
	assert_int_equal(mpf_next(r, &it, NULL), 0);
	mpf_reader_free(r);
}

/* Both parts of a pair of malloc and free are predicted: what is left is the clock. */
static void few_bytes(void **state)
{
	struct mp_info info = {.executable = "", .cmdline = ""};
	struct mpf_writer *w;
	struct mp_event e = {.kind = EV_ALLOC, .fd = -1, .stack = 1, .tid = 1, .size = 40};
	struct stat st;

	(void)state;
	seed = 3;
	assert_int_equal(mpf_create(path, &info, &w, NULL), 0);
	for (int i = 0; i < 100000; i++) {
		e.kind = EV_ALLOC;
		e.time_ns += 20 + rnd() % 2 * 10;
		e.usable = 40;
		e.addr = 0x550000001000;
		assert_int_equal(mpf_put_event(w, &e), 0);
		e.kind = EV_FREE;
		assert_int_equal(mpf_put_event(w, &e), 0);
	}
	assert_int_equal(mpf_close(w), 0);
	assert_int_equal(stat(path, &st), 0);
	/* The clock has one bit a pair; compression finds less than all. */
	assert_in_range(st.st_size, 100000 / 8, 100000 / 8 * 2);
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
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(activity),	      cmocka_unit_test(round_trip),
	    cmocka_unit_test(cut_everywhere), cmocka_unit_test(flipped_bits),
	    cmocka_unit_test(many_events),    cmocka_unit_test(chunk_alone),
	    cmocka_unit_test(few_bytes),      cmocka_unit_test(same_behind),
	    cmocka_unit_test(error_behind)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
