/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a random recording, and a list of its allocations with everything that happens to them. */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "formats/file.h"
#include "formats/session.h"
#include "model/model.h"

#define PCS	10u
#define STACKS	12u
#define ADDRS	60u
#define THREADS 4u
#define MARKS	3u
#define MAPS	5u
#define EVENTS	600
#define NEVER	UINT64_MAX
#define START	1700000000123456789ull
#define MS	1000000u

static char path[] = "/tmp/memprof-unit-XXXXXX";
static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

/* ------------------------------------------------------------ a random recording -- */

/* An allocation and what happens to it. */
struct alloc {
	uint64_t t, end, size, usable, addr; /* end NEVER: live at the end */
	uint32_t stack, tid;
	uint16_t hook;
	uint8_t flags;
	bool temporary, moved, lost; /* lost: its free */
	int prev, next;		     /* in the chain; -1: none */
	uint64_t born, died;	     /* steps, which count allocations and frees */
};

struct fake {
	struct mpf_writer *w;
	struct alloc a[EVENTS];
	int n, at[ADDRS], last[THREADS], hanging[THREADS]; /* -1: none */
	uint64_t now, latest, step, end;		   /* latest: of the events */
	uint32_t depth[STACKS], pc[STACKS][4];		   /* pc: innermost first */
	uint64_t mark[MARKS];
	uint64_t map[MAPS][2]; /* from, until; of name i % 2 */
};

/* Address 3 has an inlined frame: f9 in 9.c. */
static uint32_t frames_of(uint32_t pc, uint32_t digits[2])
{
	digits[0] = pc;
	digits[1] = 9;
	return pc == 3 ? 2 : 1;
}

static void put_symbols(struct mpf_writer *w)
{
	for (uint32_t pc = 0; pc < PCS - 1; pc++) {
		char f[2][8], src[2][8];
		struct mp_symbol sym[2] = {0};
		uint32_t digit[2], n = frames_of(pc, digit);

		for (uint32_t i = 0; i < n; i++) {
			snprintf(f[i], sizeof(f[i]), "f%u", digit[n - 1 - i]);
			snprintf(src[i], sizeof(src[i]), "/%u.c", digit[n - 1 - i]);
			sym[i].function = f[i];
			sym[i].source = src[i];
			sym[i].line = 1;
			sym[i].is_inline = i + 1 < n;
		}
		assert_int_equal(mpf_put_symbols(w, 0x1000 * (pc + 1) | SS_PC_EXACT, sym, n), 0);
	}
}

static void begin(struct fake *f)
{
	static const struct mp_hook_info hook[] = {
	    {"malloc", "libc.so.6", 1},	 {"free", "libc.so.6", 2},
	    {"realloc", "libc.so.6", 3}, {"malloc", "libjemalloc.so.2", 1},
	    {"malloc", "static", 1},	 {"tc_malloc", "static", 1},
	    {"mi_malloc", "/lib/mi", 1}, {"my_alloc", "pool.so", 1}};
	struct mp_info info = {.pid = 7, .start_unix_ns = START};

	memset(f, 0, sizeof(*f));
	memset(f->at, 0xff, sizeof(f->at));
	memset(f->last, 0xff, sizeof(f->last));
	memset(f->hanging, 0xff, sizeof(f->hanging));
	assert_int_equal(mpf_create(path, &info, &f->w, NULL), 0);
	for (size_t i = 0; i < sizeof(hook) / sizeof(hook[0]); i++)
		assert_int_equal(mpf_put_hook(f->w, &hook[i]), 0);
	for (uint32_t i = 0; i < PCS; i++) {
		char lib[16];
		struct mp_module m = {
		    .start = 0x1000 * (i + 1), .end = 0x1000 * (i + 2), .path = lib};

		snprintf(lib, sizeof(lib), "/lib/l%u", i);
		assert_int_equal(mpf_put_module(f->w, &m), 0);
	}
	for (uint32_t s = 0; s < STACKS; s++) {
		uint64_t pc[4];

		f->depth[s] = 1 + (uint32_t)rnd(4);
		for (uint32_t i = 0; i < f->depth[s]; i++) {
			f->pc[s][i] = (uint32_t)rnd(PCS);
			pc[i] = 0x1000 * (f->pc[s][i] + 1) | SS_PC_EXACT;
		}
		assert_int_equal(mpf_put_stack(f->w, s + 1, SS_STACK_COMPLETE, pc, f->depth[s]), 0);
	}
}

static struct mp_event event(struct fake *f, uint8_t kind, uint16_t hook, uint32_t i, uint32_t tid)
{
	return (struct mp_event){.kind = kind,
				 .hook = hook,
				 .time_ns = f->now,
				 .addr = 0x10000 + i * 64,
				 .tid = 100 + tid,
				 .fd = -1};
}

static void put(struct fake *f, const struct mp_event *ev)
{
	f->latest = ev->time_ns;
	assert_int_equal(mpf_put_event(f->w, ev), 0);
}

static int born(struct fake *f, const struct mp_event *ev, uint32_t i, int prev)
{
	struct alloc *a = &f->a[f->n];

	*a = (struct alloc){.t = ev->time_ns,
			    .end = NEVER,
			    .size = ev->size,
			    .usable = ev->usable,
			    .addr = ev->addr,
			    .stack = ev->stack,
			    .tid = ev->tid,
			    .hook = ev->hook,
			    .flags = ev->flags,
			    .prev = prev,
			    .next = -1,
			    .born = ++f->step,
			    .died = NEVER};
	f->at[i] = f->n;
	f->last[ev->tid - 100] = f->n;
	return f->n++;
}

static void dead(struct fake *f, int n, uint32_t tid)
{
	f->a[n].end = f->now;
	f->a[n].died = ++f->step;
	f->a[n].temporary = f->last[tid] == n && f->a[n].tid == 100 + tid;
}

static void fill(struct mp_event *ev)
{
	static const uint16_t hooks[] = {0, 0, 0, 3, 4, 6, 7};

	if (ev->kind == EV_ALLOC)
		ev->hook = hooks[rnd(7)];
	ev->size = ev->usable = rnd(3) ? rnd(300) : rnd(20000);
	ev->stack = (uint32_t)rnd(STACKS) + 1;
	if (ev->hook == 0 || ev->hook == 2) {
		ev->usable += rnd(16);
		ev->flags = (uint8_t[]){0, 0, EV_F_NON_MAIN, EV_F_MMAPPED}[rnd(4)];
	}
}

/* Allocates at the address of a live block, whose free was lost. */
static void lose_free(struct fake *f, uint32_t i, uint32_t tid)
{
	struct mp_event ev = event(f, EV_ALLOC, 0, i, tid);

	fill(&ev);
	put(f, &ev);
	dead(f, f->at[i], tid);
	f->a[f->at[i]].temporary = false;
	f->a[f->at[i]].lost = true;
	born(f, &ev, i, -1);
	f->now += 20000; /* so that no later free is taken for the lost one */
}

/* If a realloc's end was lost, its block ends when the thread begins its next realloc. */
static void begin_realloc(struct fake *f, uint32_t i, uint32_t tid)
{
	struct mp_event ev = event(f, EV_REALLOC_BEGIN, 2, i, tid);

	put(f, &ev);
	if (f->hanging[tid] >= 0)
		dead(f, f->hanging[tid], tid);
	f->hanging[tid] = -1;
}

/* Reallocs the live block @i: moves it, frees it, or fails. */
static void realloc_one(struct fake *f, uint32_t i, uint32_t tid)
{
	uint32_t to = rnd(2) ? i : (uint32_t)rnd(ADDRS), way = (uint32_t)rnd(20);
	int old = f->at[i], new;
	struct mp_event ev;

	begin_realloc(f, i, tid);
	if (way == 19) {
		f->hanging[tid] = old;
		f->at[i] = -1;
		return;
	}
	f->now += rnd(2) * rnd(MS);
	ev = event(f, EV_REALLOC_END, 2, to, tid);
	ev.old_addr = 0x10000 + i * 64;
	if (way < 3 || (to != i && f->at[to] >= 0)) {
		ev.addr = 0;
		put(f, &ev);
		return;
	}
	f->at[i] = -1;
	dead(f, old, tid);
	if (way < 6) {
		ev.addr = 0;
		ev.flags = EV_F_FREED;
	} else {
		fill(&ev);
		f->a[old].moved = true;
		new = born(f, &ev, to, old);
		f->a[old].next = new;
	}
	put(f, &ev);
}

/* Writes three mappings at the start, and the others at a later time. */
static void put_maps(struct fake *f)
{
	for (uint32_t i = 0; i < MAPS; i++) {
		uint64_t start = 0x10000 + rnd(ADDRS * 64);
		struct mp_map_usage u = {.time_ns = i < 3 ? 0 : f->now,
					 .start = start,
					 .end = start + 1 + rnd(700),
					 .path = i % 2 ? "[heap]" : ""};

		f->map[i][0] = u.start;
		f->map[i][1] = u.end;
		assert_int_equal(mpf_put_map_usage(f->w, &u), 0);
	}
}

static void random_recording(struct fake *f)
{
	struct mp_finish finish = {.reason = 1};
	uint32_t marks = 0;

	begin(f);
	for (int n = 0; n < EVENTS; n++) {
		uint32_t i = (uint32_t)rnd(ADDRS), tid = (uint32_t)rnd(THREADS);
		struct mp_event ev;

		f->now += rnd(3) ? rnd(3 * MS) : 0;
		if (marks < MARKS && rnd(EVENTS / MARKS / 2) == 0) {
			char name[] = "m0";

			name[1] = (char)('0' + marks % 2);
			f->mark[marks++] = f->now;
			assert_int_equal(mpf_put_mark(f->w, f->now, name), 0);
		}
		if (f->at[i] < 0) {
			ev = event(f, EV_ALLOC, 0, i, tid);
			fill(&ev);
			put(f, &ev);
			born(f, &ev, i, -1);
		} else if (rnd(5) < 2) {
			realloc_one(f, i, tid);
		} else if (rnd(20) == 0) {
			lose_free(f, i, tid);
		} else if (rnd(3) || f->at[i] != f->last[tid]) {
			ev = event(f, EV_FREE, 1, i, tid);
			put(f, &ev);
			dead(f, f->at[i], tid);
			f->at[i] = -1;
		}
	}
	while (marks < MARKS)
		f->mark[marks++] = NEVER;
	for (uint32_t tid = 0; tid < THREADS; tid++) {
		char name[] = "w0";

		name[1] = (char)('0' + tid / 2);
		assert_int_equal(mpf_put_thread(f->w, 100 + tid, name), 0);
	}
	put_symbols(f->w);
	put_maps(f);
	/* If its recorder was killed, a recording ends with its last event. */
	f->end = f->latest;
	if (rnd(4)) {
		f->end = finish.end_ns = f->now + rnd(MS);
		assert_int_equal(mpf_put_finish(f->w, &finish), 0);
	}
	assert_int_equal(mpf_close(f->w), 0);
}

#endif
