/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Merging the pieces of a random recording, cut at random times, gives the same events as the whole
 * recording.  Merging recordings of several processes aligns them by the clock, and each process
 * keeps its blocks.  Recordings that cannot be merged correctly are refused.
 */
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
#include "record/pieces/merge.h"

#define ADDRS	40u
#define STACKS	20u
#define HOOKS	3u
#define THREADS 3u
#define PIECES	6u
#define EVENTS	2000u

static char dir[] = "/tmp/memprof-unit-XXXXXX";
static char path[PIECES + 2][64]; /* pieces, then the whole recording and the merged one */
#define WHOLE  path[PIECES]
#define MERGED path[PIECES + 1]
static uint64_t seed = 1;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static uint64_t pc_of(uint32_t stack)
{
	return (0x400000 + stack) | SS_PC_EXACT;
}

/* ------------------------------------------------------------ a recording in pieces -- */

struct made {
	struct mpf_writer *whole, *piece;
	struct mp_info info;
	bool has_stack[STACKS], has_hook[2]; /* in the piece; in the whole */
	bool whole_stack[STACKS];
	struct mp_event live[ADDRS];	 /* kind 0: not live */
	struct mp_event moving[THREADS]; /* blocks of reallocs that have begun */
	bool in_realloc[THREADS];
	uint64_t now, base, alloc_count;
	uint32_t pieces;
};

static void put_hooks(struct mpf_writer *w)
{
	static const char *const name[HOOKS] = {"malloc", "free", "realloc"};

	for (uint32_t i = 0; i < HOOKS; i++)
		assert_int_equal(mpf_put_hook(w, &(struct mp_hook_info){name[i], "libc.so.6", 1}),
				 0);
}

static void put_stack(struct mpf_writer *w, bool *has, uint32_t id)
{
	uint64_t pc = pc_of(id);

	if (id && !has[id])
		mpf_put_stack(w, id, SS_STACK_COMPLETE, &pc, 1);
	has[id] = true;
}

static void put_carried(struct made *m, const struct mp_event *block)
{
	struct mp_event ev = *block;

	put_stack(m->piece, m->has_stack, ev.stack);
	ev.kind = EV_ALLOC;
	ev.flags |= EV_F_CARRIED;
	ev.old_addr = 0;
	ev.time_ns = m->now;
	mpf_put_event(m->piece, &ev);
}

static void begin_piece(struct made *m)
{
	struct mp_info info = m->info;

	info.piece = m->pieces;
	info.piece_ns = m->base = m->now;
	info.start_unix_ns += m->now;
	assert_int_equal(mpf_create(path[m->pieces], &info, &m->piece, NULL), 0);
	mpf_set_base(m->piece, m->now);
	memset(m->has_stack, 0, sizeof(m->has_stack));
	put_hooks(m->piece);
	for (uint32_t i = 0; i < ADDRS; i++) {
		if (m->live[i].kind)
			put_carried(m, &m->live[i]);
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		struct mp_event ev = {.kind = EV_REALLOC_BEGIN,
				      .flags = EV_F_CARRIED,
				      .time_ns = m->now,
				      .tid = 100 + t,
				      .fd = -1};

		if (!m->in_realloc[t])
			continue;
		put_carried(m, &m->moving[t]);
		ev.addr = m->moving[t].addr;
		mpf_put_event(m->piece, &ev);
	}
}

static void put_end(struct mpf_writer *w, const struct made *m, uint8_t reason)
{
	struct mp_losses l = {.stacks_total = m->pieces + 1, .lost_alloc = 5};
	struct mp_finish f = {.end_ns = m->now, .reason = reason, .restored = 1};
	struct mp_symbol s = {.function = "f"};

	mpf_put_symbols(w, pc_of(1), &s, 1);
	mpf_put_losses(w, &l);
	mpf_put_finish(w, &f);
	assert_int_equal(mpf_close(w), 0);
}

static void put(struct made *m, const struct mp_event *ev)
{
	put_stack(m->whole, m->whole_stack, ev->stack);
	put_stack(m->piece, m->has_stack, ev->stack);
	assert_int_equal(mpf_put_event(m->whole, ev), 0);
	assert_int_equal(mpf_put_event(m->piece, ev), 0);
}

static struct mp_event block_event(struct made *m, uint8_t kind, uint32_t at, uint32_t thread)
{
	uint64_t size = rnd(500);

	return (struct mp_event){.kind = kind,
				 .time_ns = m->now,
				 .addr = 0x7f0000000000 + 32 * (at + 1ull),
				 .size = size,
				 .usable = size + rnd(20),
				 .stack = (uint32_t)rnd(STACKS),
				 .tid = 100 + thread,
				 .hook = (uint16_t)rnd(HOOKS),
				 .flags = rnd(4) ? 0 : EV_F_NON_MAIN,
				 .fd = -1};
}

static void end_realloc(struct made *m, uint32_t at, uint32_t thread)
{
	struct mp_event ev = block_event(m, EV_REALLOC_END, at, thread);
	struct mp_event *old = &m->moving[thread];

	ev.old_addr = old->addr;
	m->in_realloc[thread] = false;
	if (rnd(4) == 0 || m->live[at].kind) { /* it failed */
		uint32_t back = (uint32_t)((old->addr - 0x7f0000000000) / 32 - 1);

		if (m->live[back].kind) { /* or freed */
			ev.flags = EV_F_FREED;
		} else {
			m->live[back] = *old;
			ev.flags = 0;
		}
		ev.addr = ev.size = ev.usable = 0;
		put(m, &ev);
		return;
	}
	put(m, &ev);
	m->live[at] = ev;
}

static void step(struct made *m)
{
	uint32_t at = (uint32_t)rnd(ADDRS), thread = (uint32_t)rnd(THREADS);
	struct mp_event ev = {.time_ns = m->now, .tid = 100 + thread, .fd = -1};

	m->now += rnd(1000);
	ev.time_ns = m->now;
	if (m->in_realloc[thread]) {
		end_realloc(m, at, thread);
	} else if (!m->live[at].kind) {
		ev = block_event(m, EV_ALLOC, at, thread);
		put(m, &ev);
		m->live[at] = ev;
	} else {
		ev.kind = rnd(3) ? EV_FREE : EV_REALLOC_BEGIN;
		ev.addr = m->live[at].addr;
		put(m, &ev);
		if (ev.kind == EV_REALLOC_BEGIN) {
			m->moving[thread] = m->live[at];
			m->in_realloc[thread] = true;
		}
		m->live[at].kind = 0;
	}
}

/* Writes WHOLE and PIECES pieces. */
static void make(uint64_t with_seed)
{
	struct made m = {.info = {.id = {1, 2, 3},
				  .pid = 42,
				  .machine = 62,
				  .executable = "/bin/x",
				  .cmdline = "x",
				  .start_unix_ns = 1ull << 60}};

	seed = with_seed;
	assert_int_equal(mpf_create(WHOLE, &m.info, &m.whole, NULL), 0);
	put_hooks(m.whole);
	begin_piece(&m);
	for (uint32_t i = 0; i < EVENTS; i++) {
		step(&m);
		if (rnd(EVENTS / PIECES) || m.pieces == PIECES - 1)
			continue;
		put_end(m.piece, &m, MP_END_PIECED);
		m.pieces++;
		begin_piece(&m);
	}
	put_end(m.piece, &m, MP_END_EXITED);
	while (++m.pieces < PIECES) { /* chance made fewer pieces */
		path[m.pieces][0] = 0;
	}
	put_end(m.whole, &m, MP_END_EXITED);
}

static void name_files(void)
{
	for (uint32_t i = 0; i < PIECES + 2; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%u", dir, i);
}

/* Lists the pieces in reverse order, which merging must accept. */
static uint32_t pieces(char *list[PIECES])
{
	uint32_t n = 0;

	for (uint32_t i = PIECES; i > 0; i--) {
		if (path[i - 1][0])
			list[n++] = path[i - 1];
	}
	return n;
}

/* ------------------------------------------------------------ comparing -- */

struct ids {
	uint64_t pc[1000];
	char hook[100][16];
	uint32_t hooks;
};

static bool next_event(struct mpf_reader *r, struct ids *ids, struct mp_event *ev,
		       struct mp_finish *finish, struct mp_losses *losses)
{
	struct mpf_item it;

	while (mpf_next(r, &it, NULL) > 0) {
		if (it.kind == MPF_STACK)
			ids->pc[it.stack.id] = it.stack.pc[0];
		if (it.kind == MPF_HOOK)
			snprintf(ids->hook[ids->hooks++], 16, "%s", it.hook.name);
		if (it.kind == MPF_FINISH)
			*finish = it.finish;
		if (it.kind == MPF_LOSSES)
			*losses = it.losses;
		*ev = it.event;
		if (it.kind == MPF_EVENT)
			return true;
	}
	return false;
}

static void assert_same_recording(const char *a, const char *b)
{
	static struct ids x, y;
	struct mp_finish f = {0}, g = {0};
	struct mp_losses l = {0}, k = {0};
	struct mpf_reader *r, *s;
	struct mp_info info;
	struct mp_event e, o;
	uint32_t n = 0;

	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	assert_int_equal(mpf_open(a, &r, &info, NULL), 0);
	assert_int_equal(mpf_open(b, &s, &info, NULL), 0);
	while (next_event(r, &x, &e, &f, &l)) {
		assert_true(next_event(s, &y, &o, &g, &k));
		assert_int_equal(x.pc[e.stack], y.pc[o.stack]);
		assert_string_equal(x.hook[e.hook], y.hook[o.hook]);
		e.stack = o.stack = e.hook = o.hook = 0;
		assert_memory_equal(&e, &o, sizeof(e));
		n++;
	}
	assert_false(next_event(s, &y, &o, &g, &k));
	assert_int_equal(n, EVENTS);
	assert_memory_equal(&f, &g, sizeof(f));
	assert_int_equal(k.lost_alloc, l.lost_alloc); /* of the session, so the last value counts */
	assert_null(mpf_truncated(r));
	assert_null(mpf_truncated(s));
	mpf_reader_free(r);
	mpf_reader_free(s);
}

static void pieces_become_one(void **state)
{
	struct merge_result result;
	char *list[PIECES];

	(void)state;
	for (uint64_t i = 1; i <= 30; i++) {
		name_files();
		make(i);
		assert_int_equal(recording_merge(list, pieces(list), MERGED, &result, NULL), 0);
		assert_int_equal(result.processes, 1);
		assert_false(result.truncated);
		assert_same_recording(WHOLE, MERGED);
	}
}

/* ------------------------------------------------------------ processes -- */

struct process {
	uint8_t id;
	uint32_t pid, tid;
	uint64_t start, process_start, sample;
	uint64_t code; /* bias of the program at 0x400000 */
	uint8_t reason;
	bool cut;
};

/* Each process has ten blocks of 100 bytes at the same addresses and frees nine of them. */
static void make_process(const char *to, const struct process *p)
{
	struct mp_info info = {.id = {p->id},
			       .pid = p->pid,
			       .machine = 62,
			       .executable = "/bin/x",
			       .cmdline = "x",
			       .start_unix_ns = p->start,
			       .process_start_unix_ns = p->process_start,
			       .sample_interval = p->sample};
	struct mp_module mod = {
	    .start = 0x400000, .end = 0x500000, .bias = p->code, .path = "/bin/x"};
	struct mp_finish f = {.end_ns = 2000, .reason = p->reason};
	struct mp_losses l = {.foreign_frees = 1, .lost_free = 2};
	uint64_t pc = pc_of(7);
	struct mpf_writer *w;

	assert_int_equal(mpf_create(to, &info, &w, NULL), 0);
	put_hooks(w);
	mpf_put_module(w, &mod);
	mpf_put_stack(w, 1, SS_STACK_COMPLETE, &pc, 1);
	mpf_put_sample(w, &(struct mp_sample){.rss = 1000 + p->pid});
	for (uint64_t i = 0; i < 20; i++) {
		struct mp_event ev = {.kind = i < 10 ? EV_ALLOC : EV_FREE,
				      .time_ns = i * 100,
				      .addr = 0x1000 + i % 10 * 128,
				      .size = i < 10 ? 100 : 0,
				      .usable = i < 10 ? 104 : 0,
				      .stack = i < 10,
				      .tid = p->tid,
				      .fd = -1};

		if (i < 19)
			mpf_put_event(w, &ev);
	}
	mpf_put_losses(w, &l);
	mpf_put_finish(w, &f);
	assert_int_equal(p->cut ? mpf_close_open_ended(w) : mpf_close(w), 0);
}

static const struct process one = {1, 10, 10, 1000000, 5000000000, 0, 0, MP_END_EXITED, false};

static int merge_two(const struct process *a, const struct process *b, struct mp_err *err)
{
	struct merge_result result;
	char *list[] = {path[0], path[1]};

	name_files();
	make_process(path[0], a);
	make_process(path[1], b);
	return recording_merge(list, 2, MERGED, &result, err);
}

static void processes_by_the_clock(void **state)
{
	struct process two = one;
	uint64_t last = 0, events = 0, of[2] = {0}, samples = 0;
	struct mp_losses losses = {0};
	struct mpf_reader *r;
	struct mp_info info;
	struct mpf_item it;
	uint32_t stacks = 0, processes = 0;

	(void)state;
	two.id = 2;
	two.pid = two.tid = 11;
	two.start += 50;
	assert_int_equal(merge_two(&two, &one, NULL), 0);
	assert_int_equal(mpf_open(MERGED, &r, &info, NULL), 0);
	assert_int_equal(info.processes, 2);
	assert_int_equal(info.pid, 10);
	while (mpf_next(r, &it, NULL) > 0) {
		stacks += it.kind == MPF_STACK;
		if (it.kind == MPF_PROCESS) {
			assert_int_equal(it.process.number, processes++);
			assert_int_equal(it.process.start_ns, it.process.pid == 11 ? 50 : 0);
			assert_int_equal(it.process.end_ns - it.process.start_ns, 2000);
		}
		if (it.kind == MPF_LOSSES)
			losses = it.losses;
		if (it.kind == MPF_SAMPLE && ++samples == 2)
			assert_int_equal(it.sample.rss, 2021);
		if (it.kind != MPF_EVENT)
			continue;
		assert_true(it.event.time_ns >= last);
		last = it.event.time_ns;
		of[it.event.addr >> MP_PROCESS_SHIFT]++;
		assert_int_equal(it.event.addr >> MP_PROCESS_SHIFT, it.event.tid - 10);
		events++;
	}
	assert_int_equal(events, 38);
	assert_int_equal(of[0], 19);
	assert_int_equal(of[1], 19);
	assert_int_equal(stacks, 1); /* equal stacks are counted together */
	assert_int_equal(samples, 2);
	assert_int_equal(losses.foreign_frees, 2);
	assert_int_equal(losses.lost_free, 4);
	mpf_reader_free(r);
}

static void assert_refused(const struct process *two, const char *why)
{
	struct mp_err err = {0};

	assert_true(merge_two(&one, two, &err) < 0);
	assert_non_null(strstr(err.what, why));
	assert_int_equal(access(MERGED, F_OK), -1);
}

static void untrue_is_refused(void **state)
{
	struct process base = one, p;
	struct merge_result result;
	struct mp_err err = {0};
	char *list[PIECES];

	(void)state;
	name_files();
	unlink(MERGED);
	assert_refused(&one, "the same recording");
	base.id = 2;
	assert_refused(&base, "of one process at different times");
	base.pid = 11;
	assert_refused(&base, "both have a thread 10 at one time");
	base.tid = 11;
	p = base;
	p.sample = 1000;
	assert_refused(&p, "sampled differently");
	p = base;
	p.code = 0x1000;
	assert_refused(&p, "at 0x400000 one has /bin/x");
	p = base;
	p.cut = true;
	assert_int_equal(merge_two(&one, &p, &err), 0);
	name_files();
	unlink(MERGED);
	make(3);
	list[0] = path[0];
	list[1] = path[2];
	assert_true(recording_merge(list, 2, MERGED, &result, &err) < 0);
	assert_non_null(strstr(err.what, "is missing: number 1"));
	list[1] = WHOLE;
	assert_true(recording_merge(list, 2, MERGED, &result, &err) < 0);
	list[0] = path[1];
	assert_true(recording_merge(list, 1, path[1], &result, &err) < 0);
	assert_non_null(strstr(err.what, "written over itself"));
}

/* A process that executed another program has two recordings; the first one's blocks are gone. */
static void exec_is_another_life(void **state)
{
	struct process first = one, second = one;

	(void)state;
	first.reason = MP_END_EXECED;
	second.id = 2;
	second.start += 5000;
	assert_int_equal(merge_two(&first, &second, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	name_files();
	for (uint32_t i = 0; i < PIECES + 2; i++)
		unlink(path[i]);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces_become_one), cmocka_unit_test(processes_by_the_clock),
	    cmocka_unit_test(untrue_is_refused), cmocka_unit_test(exec_is_another_life)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
