/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recorder's sums when records are missing: what was allocated is freed or live, whatever number of
 * threads processes the records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "record/clock.h"
#include "record/recorder.h"

#define RING   65536u
#define STRIDE (4096u + 4096u + RING)
#define SLOTS  2u
#define LENGTH (65536u + SLOTS * STRIDE + 65536u)
#define LAG_US 2000000
#define PAUSE  (1ull << 20) /* ticks: so many that the order of events is certain */

struct fixture {
	struct ss_control *block;
	struct recorder *recorder;
	unsigned int jobs;
	char path[32];
	uint64_t now;
};

static bool no_code(void *ctx)
{
	(void)ctx;
	return false;
}

static bool no_module(void *ctx, struct mp_module *m)
{
	(void)ctx;
	(void)m;
	return false;
}

static struct ss_thread *slot(struct fixture *f, uint32_t i)
{
	return (void *)((char *)f->block + f->block->slots + i * f->block->slot_stride);
}

/* @state: the number of jobs, then the fixture. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->jobs = *(const unsigned int *)*state;
	*state = f;
	f->block = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->block, MAP_FAILED);
	f->block->nslots = SLOTS;
	f->block->slots = 65536;
	f->block->slot_stride = STRIDE;
	f->block->slot_ring = 4096;
	f->block->ring_size = RING;
	f->block->arena = 65536 + SLOTS * STRIDE;
	f->block->arena_words = 8192;
	f->block->journal = 4096;
	strcpy(f->path, "/tmp/memprof-unit-XXXXXX");
	close(mkstemp(f->path));
	f->now = clock_ticks() - (PAUSE << 4);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	munmap(f->block, LENGTH);
	free(f);
	return 0;
}

static void write_record(struct fixture *f, uint32_t ring, void *record, uint32_t type, size_t size)
{
	struct ss_thread *t = slot(f, ring);
	struct perf_event_mmap_page *page = (void *)((char *)t + f->block->slot_ring);
	struct mpr_free *common = record;

	f->block->slots_claimed += !t->tp;
	t->tp = t->tid = 100 + ring;
	common->h.type = type;
	common->h.size = (uint16_t)size;
	common->time = f->now++;
	memcpy((char *)page + 4096 + page->data_head, record, size);
	__atomic_store_n(&page->data_head, page->data_head + size, __ATOMIC_RELEASE);
}

static struct perf_event_mmap_page *page_of(struct fixture *f, uint32_t ring)
{
	return (void *)((char *)slot(f, ring) + f->block->slot_ring);
}

/* Return: the position of its record. */
static uint64_t put_alloc_in(struct fixture *f, uint32_t ring, uint64_t addr, uint32_t size)
{
	struct mpr_alloc a = {.addr_hook = addr, .size = size};
	uint64_t at = page_of(f, ring)->data_head;

	write_record(f, ring, &a, MPR_ALLOC, sizeof(a));
	return at;
}

static void put_alloc(struct fixture *f, uint64_t addr, uint32_t size)
{
	put_alloc_in(f, 0, addr, size);
}

/* The thread frees the block of the record at @at, which is recent. */
static void end_block(struct fixture *f, uint32_t ring, uint64_t at)
{
	struct perf_event_mmap_page *page = page_of(f, ring);
	uint64_t *head = (void *)((char *)page + 4096 + at);

	*head = mpr_head_ended(*head, (uint32_t)(page->data_head - at), 3);
	slot(f, ring)->written[MPR_LOST_FREE]++;
}

static void put_free(struct fixture *f, uint32_t ring, uint64_t addr)
{
	struct mpr_free r = {.addr_hook = addr};

	write_record(f, ring, &r, MPR_FREE, sizeof(r));
}

/* Frees of an ending thread's cached blocks, which the allocator makes; the program freed them
 * before. */
static void put_own_free(struct fixture *f, uint32_t ring, uint64_t addr)
{
	struct mpr_free r = {.h.misc = MPR_F_OWN_FREE, .addr_hook = addr};

	write_record(f, ring, &r, MPR_FREE, sizeof(r));
}

static void put_realloc_begin(struct fixture *f, uint32_t ring, uint64_t old)
{
	struct mpr_free begin = {.addr_hook = old};

	write_record(f, ring, &begin, MPR_REALLOC_BEGIN, sizeof(begin));
}

static void put_realloc_end(struct fixture *f, uint32_t ring, uint64_t old, uint64_t addr,
			    uint64_t size)
{
	struct mpr_realloc r = {.old_addr = old, .addr_hook = addr, .size = size};

	write_record(f, ring, &r, MPR_REALLOC_END, sizeof(r));
}

static void put_realloc(struct fixture *f, uint64_t old, uint64_t addr, uint64_t size, bool end)
{
	put_realloc_begin(f, 0, old);
	if (end)
		put_realloc_end(f, 0, old, addr, size);
}

struct told {
	uint64_t live[16]; /* addresses, 0: none */
	struct mp_losses losses;
};

static bool leave(struct told *t, uint64_t addr)
{
	for (int i = 0; i < 16; i++) {
		if (t->live[i] == addr) {
			t->live[i] = 0;
			return true;
		}
	}
	return false;
}

static void enter(struct told *t, uint64_t addr)
{
	t->losses.mismatches += leave(t, addr);
	for (int i = 0; i < 16; i++) {
		if (!t->live[i]) {
			t->live[i] = addr;
			return;
		}
	}
	fail();
}

static void follow(struct told *t, const struct mp_event *ev)
{
	switch (ev->kind) {
	case EV_ALLOC:
		enter(t, ev->addr);
		break;
	case EV_FREE:
		if (leave(t, ev->addr))
			break;
		if (ev->flags & EV_F_OWN_FREE)
			t->losses.housekeeping_frees++;
		else
			t->losses.foreign_frees++;
		break;
	case EV_REALLOC_BEGIN:
		t->losses.foreign_reallocs += !leave(t, ev->addr);
		break;
	case EV_REALLOC_END:
		enter(t, ev->addr ? ev->addr : ev->old_addr);
	}
}

static struct told read_told(const char *path)
{
	struct told t = {0};
	struct mpf_reader *r;
	struct mpf_item it;
	struct mp_info info;

	assert_int_equal(mpf_open(path, &r, &info, NULL), 0);
	while (mpf_next(r, &it, NULL) > 0) {
		if (it.kind == MPF_EVENT)
			follow(&t, &it.event);
	}
	mpf_reader_free(r);
	return t;
}

/* A reader of the recording must get the same sums as the recorder. */
static void assert_told(const struct fixture *f, const struct recorder_progress *p,
			const struct mp_losses *losses)
{
	struct told t = read_told(f->path);
	uint64_t live = 0;

	for (int i = 0; i < 16; i++)
		live += t.live[i] != 0;
	assert_int_equal(live, p->live_blocks);
	assert_int_equal(t.losses.mismatches, losses->mismatches);
	assert_int_equal(t.losses.foreign_frees, losses->foreign_frees);
	assert_int_equal(t.losses.foreign_reallocs, losses->foreign_reallocs);
	assert_int_equal(t.losses.housekeeping_frees, losses->housekeeping_frees);
}

struct how {
	bool paused;
	bool toggle; /* it is paused, or continued, right after its start */
	bool lags;   /* it stops some time after the target was released */
	uint64_t queue_ceiling;
	bool ends_late; /* the block of ring 0's first record ends after the record was read */
};

static void end_after_reading(struct fixture *f)
{
	while (!__atomic_load_n(&slot(f, 0)->read_to, __ATOMIC_ACQUIRE))
		usleep(100);
	end_block(f, 0, 0);
}

static struct recorder_progress record_as(struct fixture *f, struct mp_losses *losses,
					  struct how how)
{
	struct recorder_config config = {.block = f->block,
					 .layout = f->block,
					 .journal =
					     (const void *)((char *)f->block + f->block->journal),
					 .block_length = LENGTH,
					 .pid = getpid(),
					 .path = f->path,
					 .queue_ceiling = how.queue_ceiling,
					 .jobs = f->jobs,
					 .info = {.executable = "/x", .cmdline = "x"},
					 .select.paused = how.paused,
					 .code_changed = no_code,
					 .next_module = no_module};
	struct recorder_progress p;
	struct mp_finish finish = {0};
	struct mp_err err = {0};

	assert_int_equal(recorder_start(&config, &f->recorder, &err), 0);
	if (how.toggle)
		recorder_pause(f->recorder, !how.paused);
	if (how.ends_late)
		end_after_reading(f);
	if (how.lags) {
		recorder_let_go(f->recorder);
		usleep(LAG_US);
	}
	assert_int_equal(recorder_stop(f->recorder, &finish, losses, NULL), 0);
	p = recorder_progress(f->recorder);
	recorder_free(f->recorder);
	assert_told(f, &p, losses);
	return p;
}

static struct recorder_progress record(struct fixture *f, struct mp_losses *losses)
{
	return record_as(f, losses, (struct how){0});
}

static void assert_sums(const struct recorder_progress *p, uint64_t allocs, uint64_t live,
			uint64_t live_bytes)
{
	assert_int_equal(p->allocs, allocs);
	assert_int_equal(p->live_blocks, live);
	assert_int_equal(p->frees, allocs - live);
	assert_int_equal(p->live_bytes, live_bytes);
}

/* No event found its block in a wrong state. */
static void assert_in_order(const struct mp_losses *losses)
{
	assert_int_equal(losses->mismatches, 0);
	assert_int_equal(losses->foreign_frees, 0);
	assert_int_equal(losses->foreign_reallocs, 0);
}

static void test_lost_free(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	put_alloc(*state, 0x1000, 20); /* the free in between was lost */
	p = record(*state, &losses);
	assert_sums(&p, 2, 1, 20);
	assert_int_equal(losses.mismatches, 1);
}

static void test_overtaken_free(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	put_alloc(*state, 0x1000, 20);
	put_free(*state, 1, 0x1000); /* another thread's, a tick late */
	p = record(*state, &losses);
	assert_sums(&p, 2, 1, 20);
	assert_in_order(&losses);
}

/* A free has an earlier time than the allocation of its block by another thread. */
static void test_overtaken_alloc(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_free(*state, 1, 0x1000);
	put_alloc(*state, 0x1000, 10);
	put_realloc_begin(*state, 1, 0x2000);
	put_alloc(*state, 0x2000, 10);
	put_realloc_end(*state, 1, 0x2000, 0x3000, 40);
	p = record(*state, &losses);
	assert_sums(&p, 3, 1, 40);
	assert_in_order(&losses);
}

/* The same for blocks that a realloc returns, and for one that a failed realloc leaves. */
static void test_overtaken_realloc(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	put_realloc_begin(*state, 0, 0x1000);
	put_free(*state, 1, 0x2000);
	put_realloc_end(*state, 0, 0x1000, 0x2000, 20);
	put_alloc(*state, 0x3000, 10);
	put_realloc_begin(*state, 0, 0x3000);
	put_free(*state, 1, 0x3000);
	put_realloc_end(*state, 0, 0x3000, 0, 1u << 30);
	/* The free is also earlier than the realloc's begin. */
	put_alloc(*state, 0x4000, 10);
	put_free(*state, 1, 0x5000);
	put_realloc(*state, 0x4000, 0x5000, 20, true);
	p = record(*state, &losses);
	assert_sums(&p, 5, 0, 0);
	assert_in_order(&losses);
}

/* Frees of older blocks; then another thread, or the same one, allocates at their addresses. */
static void test_older_blocks(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;

	put_free(f, 1, 0x1000);
	f->now += PAUSE;
	put_alloc(f, 0x1000, 10);
	f->now += PAUSE;
	put_free(f, 0, 0x2000);
	put_alloc(f, 0x2000, 10);
	p = record(f, &losses);
	assert_sums(&p, 2, 2, 20);
	assert_int_equal(losses.foreign_frees, 2);
}

/* An ending thread frees its cached blocks, which another thread allocates at once. */
static void test_overtaken_own_free(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;

	put_own_free(f, 1, 0x1000);
	put_alloc(f, 0x1000, 10);
	put_alloc(f, 0x2000, 10);
	put_own_free(f, 1, 0x2000);
	p = record(f, &losses);
	assert_sums(&p, 2, 2, 20);
	assert_int_equal(losses.housekeeping_frees, 1); /* the time of the other is not known */
	assert_in_order(&losses);
}

/* Blocks whose ends are in the records of their allocations. */
static void test_short(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;
	uint64_t at;

	end_block(f, 0, put_alloc_in(f, 0, 0x1000, 10));
	at = put_alloc_in(f, 0, 0x1000, 20);
	put_alloc(f, 0x2000, 30);
	end_block(f, 0, at);
	end_block(f, 0, put_alloc_in(f, 0, 0x1000, 40)); /* no record follows */
	p = record(f, &losses);
	assert_sums(&p, 4, 1, 30);
	assert_in_order(&losses);
}

static void test_short_after_reading(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	p = record_as(*state, &losses, (struct how){.ends_late = true});
	assert_sums(&p, 1, 0, 0);
	assert_in_order(&losses);
}

/* The queue has no room for the allocation's record, but for the end. */
static void test_end_of_dropped(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	p = record_as(*state, &losses, (struct how){.ends_late = true, .queue_ceiling = 128});
	assert_int_equal(p.allocs, 0);
	assert_int_equal(losses.foreign_frees, 1);
}

/* Another thread gets the address before the thread writes its next record. */
static void test_short_and_reused(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;

	end_block(f, 0, put_alloc_in(f, 0, 0x1000, 10));
	put_alloc_in(f, 1, 0x1000, 20);
	put_alloc(f, 0x2000, 30);
	put_free(f, 1, 0x2000);
	/* Nor does it write one later. */
	end_block(f, 0, put_alloc_in(f, 0, 0x3000, 10));
	put_alloc_in(f, 1, 0x3000, 40);
	p = record(f, &losses);
	assert_sums(&p, 5, 2, 60);
	assert_in_order(&losses);
}

/* Another thread frees the block, gets the address again and passes it back.  The record that shows
 * the end is that of the first block. */
static void test_end_of_passed_block(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;
	uint64_t at = put_alloc_in(f, 0, 0x1000, 10);

	put_free(f, 1, 0x1000);
	put_alloc_in(f, 1, 0x1000, 20);
	end_block(f, 0, at);
	put_alloc(f, 0x2000, 30);
	p = record(f, &losses);
	assert_sums(&p, 3, 1, 30);
	assert_in_order(&losses);
}

/* Two threads pass an address back and forth; each frees what the other one allocated. */
static void test_passed_back_and_forth(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;
	uint64_t at[2];

	at[1] = put_alloc_in(f, 1, 0x1000, 1);
	put_free(f, 0, 0x1000); /* it has no record of this block */
	for (uint32_t i = 0; i < 20; i++) {
		at[i % 2] = put_alloc_in(f, i % 2, 0x1000, 2 + i);
		end_block(f, 1 - i % 2, at[1 - i % 2]);
	}
	put_alloc_in(f, 0, 0x1000, 100);
	p = record(f, &losses);
	assert_sums(&p, 22, 1, 100);
	assert_in_order(&losses);
}

/* Another thread moves the block. */
static void test_end_of_moved_block(void **state)
{
	struct fixture *f = *state;
	struct mp_losses losses;
	struct recorder_progress p;
	uint64_t at = put_alloc_in(f, 0, 0x1000, 10);

	put_realloc_begin(f, 1, 0x1000);
	put_realloc_end(f, 1, 0x1000, 0x2000, 20);
	put_alloc_in(f, 1, 0x1000, 40);
	end_block(f, 0, at);
	put_free(f, 0, 0x2000);
	p = record(f, &losses);
	assert_sums(&p, 3, 0, 0);
	assert_in_order(&losses);
}

static void test_realloc_without_end(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	put_realloc(*state, 0x1000, 0x2000, 30, false);
	put_alloc(*state, 0x3000, 5);
	put_realloc(*state, 0x3000, 0x4000, 50, true);
	p = record(*state, &losses);
	assert_sums(&p, 3, 1, 50);
}

static void test_realloc_of_older_block(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_realloc(*state, 0x1000, 0x2000, 30, true);
	p = record(*state, &losses);
	assert_sums(&p, 1, 1, 30);
	assert_int_equal(losses.foreign_reallocs, 1);
}

static void test_failed_realloc(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	put_realloc(*state, 0x1000, 0, 1u << 30, true);
	p = record(*state, &losses);
	assert_sums(&p, 1, 1, 10);
}

/* Records that are in the rings when recording is paused were made before. */
static void test_paused_late(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	p = record_as(*state, &losses, (struct how){.toggle = true});
	assert_sums(&p, 1, 1, 10);
}

static void test_goes_on_late(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	p = record_as(*state, &losses, (struct how){.paused = true, .toggle = true});
	assert_sums(&p, 0, 0, 0);
	assert_int_equal(losses.left_out_allocs, 1);
}

/* The duration of a recording ends when its target is released. */
static void test_let_go(void **state)
{
	struct mp_losses losses;
	struct recorder_progress p;

	put_alloc(*state, 0x1000, 10);
	p = record_as(*state, &losses, (struct how){.lags = true});
	assert_sums(&p, 1, 1, 10);
	assert_true(p.duration_ns < LAG_US * 1000ull);
}

/* ------------------------------------------------------------------ pieces -- */

static void name_piece(void *ctx, uint32_t number, char *path, size_t size)
{
	const struct fixture *f = ctx;

	snprintf(path, size, "%s-%u", f->path, number);
}

static void piece_begun(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
}

static void no_modules(void *ctx, struct mpf_writer *w)
{
	(void)ctx;
	(void)w;
}

static void no_symbols(void *ctx, struct mpf_writer *w, const uint64_t *pc, uint64_t n)
{
	(void)ctx;
	(void)w;
	(void)pc;
	(void)n;
}

/* A piece begins while a thread is inside a realloc, and its old block's address already is another
 * block's.  The other block must be in the piece. */
static void test_piece_in_realloc(void **state)
{
	struct fixture *f = *state;
	struct recorder_config config = {
	    .block = f->block,
	    .layout = f->block,
	    .journal = (const void *)((char *)f->block + f->block->journal),
	    .block_length = LENGTH,
	    .pid = getpid(),
	    .path = f->path,
	    .jobs = f->jobs,
	    .info = {.executable = "/x", .cmdline = "x", .memprof_version = "x"},
	    .rotation = {.bytes = 1,
			 .name = name_piece,
			 .begun = piece_begun,
			 .ending = {.modules = no_modules, .symbolize = no_symbols}},
	    .code_changed = no_code,
	    .next_module = no_module,
	    .ctx = f};
	struct recorder_progress p;
	struct recorder_boundary at;
	struct mp_finish finish = {0};
	struct mp_losses losses;
	struct mp_err err = {0};

	put_alloc(f, 0x1000, 10);
	put_realloc_begin(f, 1, 0x1000);
	put_alloc(f, 0x1000, 20);
	f->block->slots_claimed = SLOTS;
	assert_int_equal(recorder_start(&config, &f->recorder, &err), 0);
	assert_int_equal(recorder_flush(f->recorder, &at), 0);
	f->now += PAUSE;
	put_free(f, 0, 0x1000);
	put_realloc_end(f, 1, 0x1000, 0x2000, 40);
	assert_int_equal(recorder_stop(f->recorder, &finish, &losses, NULL), 0);
	p = recorder_progress(f->recorder);
	recorder_free(f->recorder);
	assert_sums(&p, 3, 1, 40);
	assert_in_order(&losses);
	assert_true(p.pieces > 0);
	for (uint32_t i = 1; i <= p.pieces; i++) {
		char path[64];
		struct told t;

		name_piece(f, i, path, sizeof(path));
		t = read_told(path);
		unlink(path);
		assert_in_order(&t.losses);
	}
}

static unsigned int jobs[RECORDER_JOBS] = {1, 2, 3};

#define JOBS(test, i) ((struct CMUnitTest){#test ", jobs " #i, test, setup, teardown, &jobs[(i)-1]})
#define TEST(test)    JOBS(test, 1), JOBS(test, 2), JOBS(test, 3)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_lost_free),
					   TEST(test_overtaken_free),
					   TEST(test_overtaken_alloc),
					   TEST(test_overtaken_realloc),
					   TEST(test_older_blocks),
					   TEST(test_overtaken_own_free),
					   TEST(test_short),
					   TEST(test_short_after_reading),
					   TEST(test_end_of_dropped),
					   TEST(test_short_and_reused),
					   TEST(test_end_of_passed_block),
					   TEST(test_passed_back_and_forth),
					   TEST(test_end_of_moved_block),
					   TEST(test_realloc_without_end),
					   TEST(test_realloc_of_older_block),
					   TEST(test_failed_realloc),
					   TEST(test_paused_late),
					   TEST(test_goes_on_late),
					   TEST(test_let_go),
					   TEST(test_piece_in_realloc)};

	return cmocka_run_group_tests_name("record/balance", tests, NULL, NULL);
}
