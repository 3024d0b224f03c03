/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/reader.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/fault.h"
#include "lib/privileges.h"
#include "record/kernel/slice.h"
#include "record/ring.h"
#include "record/order/recent.h"
#include "record/wire.h"

#define HEARTBEAT_S   3
#define SLEEP_MS      20
#define MOST_SLEEP_MS 160
#define QUIET_SHARE   64 /* a round with less than ring size / QUIET_SHARE counts as quiet */
#define IDLE_NEWS_NS  500000000ull
#define NICE	      -10
#define STEPS	      1024
#define RING_STEP     256   /* bytes of a step for each ring: a batch costs time for every ring */
#define WINDOWS	      128   /* of thinning, in a second */
#define TIMED_PARTS   50000 /* of a second: the most that a timed call counts for */
#define KEEP_S	      30    /* time for the next recorder to take over */

int reader_init(struct reader *r, const struct recorder_config *config,
		const struct block_layout *layout, struct recorder_shared *shared)
{
	r->config = config;
	r->layout = layout;
	r->shared = shared;
	r->queue_ceiling = queue_stats(shared->queue).ceiling;
	r->is_active = calloc(layout->nslots, sizeof(*r->is_active));
	r->frees_seen = calloc(layout->nslots, sizeof(*r->frees_seen));
	return r->is_active && r->frees_seen ? 0 : -ENOMEM;
}

void reader_free(struct reader *r)
{
	free(r->is_active);
	free(r->frees_seen);
}

static void heartbeat(struct reader *r, uint64_t seconds)
{
	uint64_t rate;

	fault_point("record");
	pthread_mutex_lock(&r->shared->clock_lock);
	rate = (uint64_t)r->shared->clock.rate_guess;
	pthread_mutex_unlock(&r->shared->clock_lock);
	__atomic_store_n(&r->config->block->thin_window, rate / WINDOWS, __ATOMIC_RELAXED);
	__atomic_store_n(&r->config->block->spent_max, rate / TIMED_PARTS, __ATOMIC_RELAXED);
	__atomic_store_n(&r->config->block->deadline, clock_ticks() + seconds * rate,
			 __ATOMIC_RELAXED);
}

void reader_heartbeat(struct reader *r)
{
	heartbeat(r, HEARTBEAT_S);
}

static struct ring ring_at(const struct reader *r, uint32_t i)
{
	char *page = (char *)slot_at(r->layout, i) + r->layout->slot_ring;

	struct ring ring = {.page = (struct perf_event_mmap_page *)page,
			    .data = (const uint8_t *)page + 4096,
			    .size = r->layout->ring_size};

	recent_continue(slot_at(r->layout, i), &ring);
	return ring;
}

static struct batch *batch_new(uint32_t max_segments)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b)
		b->segment = calloc(max_segments ? max_segments : 1, sizeof(*b->segment));
	if (!b || !b->segment) {
		batch_free(b);
		return NULL;
	}
	return b;
}

/* Drops all records of a batch.  If a flush waits for the batch, it is passed on empty. */
static void drop_batch(struct reader *r, struct batch *b)
{
	struct queue_drop dropped = {0};

	wire_census(b, &dropped);
	queue_count_drop(r->shared->queue, &dropped);
	r->after_loss = true;
	b->size -= b->bytes;
	b->nsegments = 0;
	b->bytes = 0;
	vec_free(&b->ends);
	free(b->data);
	b->data = NULL;
	if (b->barrier == r->barrier_sent || !queue_put(r->shared->queue, b, QUEUE_BARRIER))
		batch_free(b);
}

static bool must_not_lose(const struct reader *r)
{
	return r->layout->lossless && !r->gave_up;
}

/* Do the rings fill up without harm while the queue is full?  The agent then waits or thins. */
static bool holds_back(const struct reader *r)
{
	return must_not_lose(r) || r->layout->thins;
}

/* Passes a batch to the aggregator and counts what the queue does not accept. */
static void hand_over(struct reader *r, struct batch *b, bool last)
{
	bool flushes = batch_is_empty(b) && b->barrier != r->barrier_sent;
	struct queue_drop dropped = {0};

	b->after_loss = r->after_loss;
	r->after_loss = false;
	/* Lossless: the queue never holds more than half of the ceiling and one round. */
	if (queue_put(r->shared->queue, b,
		      must_not_lose(r) || last || flushes ? QUEUE_BARRIER : QUEUE_ALL))
		return;
	if (batch_is_empty(b)) { /* a later one has the same effect */
		r->after_loss = b->after_loss;
		batch_free(b);
		return;
	}
	wire_drop_blocks(b, &dropped);
	queue_count_drop(r->shared->queue, &dropped);
	if (!queue_put(r->shared->queue, b, QUEUE_FREES))
		drop_batch(r, b);
}

/* Counts the records of a round that exceeds the queue limit.  @to: as for recent_read(); the ends of
 * their blocks after it are read later, as those of other records. */
static void count_dropped(struct reader *r, struct ss_thread *t, const struct ring *ring,
			  uint64_t to, uint64_t bytes)
{
	struct segment s = {.bytes = bytes};
	struct batch b = {.nsegments = 1, .segment = &s, .data = malloc(bytes)};
	struct queue_drop dropped = {0};

	if (b.data) {
		ring_copy(ring, b.data, bytes);
		recent_read(t, ring, to, b.data, bytes);
		wire_census(&b, &dropped);
	} else { /* no memory to inspect them: assume the smallest records */
		recent_drop(t, ring, bytes);
		dropped.events[MPR_LOST_OTHER] = bytes / sizeof(struct mpr_free);
	}
	free(b.data);
	queue_count_drop(r->shared->queue, &dropped);
}

enum round {
	ROUND,
	ROUND_LAST, /* the rings have no writer any more */
	ROUND_KEEP, /* the next recorder continues: later records stay in the rings */
};

/* Return: ticks up to which all records are in the rings. */
static uint64_t complete_until(const struct reader *r)
{
	uint64_t now = clock_ticks() - READER_REORDER_TICKS, produced;

	if (!r->config->complete_until)
		return now;
	produced = __atomic_load_n(r->config->complete_until, __ATOMIC_ACQUIRE);
	return produced < now ? produced : now;
}

/* Return: whether to pass on an empty batch.  It advances the time, so that records which waited
 * for a later round are processed, and periodic work is done. */
static bool wants_news(struct reader *r)
{
	uint64_t now = mono_ns();

	if (!r->config->complete_until && !r->settling && now - r->handed_over_ns < IDLE_NEWS_NS)
		return false;
	r->handed_over_ns = now;
	r->settling = false;
	return true;
}

void reader_find_active(struct reader *r, bool all)
{
	struct recorder_shared *s = r->shared;
	uint64_t claimed = __atomic_load_n(&r->config->block->slots_claimed, __ATOMIC_ACQUIRE);

	if (claimed == r->claimed_seen && !all)
		return;
	r->claimed_seen = claimed;
	for (uint32_t i = 0; i < r->layout->nslots; i++) {
		if (r->is_active[i] ||
		    !__atomic_load_n(&slot_at(r->layout, i)->tp, __ATOMIC_ACQUIRE))
			continue;
		r->is_active[i] = true;
		s->active[s->nactive] = i;
		__atomic_store_n(&s->nactive, s->nactive + 1, __ATOMIC_RELEASE);
	}
}

/* What is ready in the rings at the start of a round. */
struct ready {
	struct segment *segment;
	struct ring *ring;
	uint64_t *bytes; /* bytes not yet read */
	bool *ends;	 /* blocks may have ended whose records were read before */
	uint32_t n;
	uint64_t total;
};

static void ready_free(struct ready *a)
{
	free(a->segment);
	free(a->ring);
	free(a->bytes);
	free(a->ends);
}

static int ready_find(struct reader *r, struct ready *a)
{
	uint32_t n = r->shared->nactive + 1;

	*a = (struct ready){.segment = calloc(n, sizeof(*a->segment)),
			    .ring = calloc(n, sizeof(*a->ring)),
			    .bytes = calloc(n, sizeof(*a->bytes)),
			    .ends = calloc(n, sizeof(*a->ends))};
	if (!a->segment || !a->ring || !a->bytes || !a->ends)
		return -ENOMEM;
	/* All heads are read before any data, so that a round is a snapshot of all rings. */
	for (uint32_t k = 0; k < r->shared->nactive; k++) {
		uint32_t i = r->shared->active[k];
		/* Read the thread id before the head: if it changes later, the ring has an
		 * MPR_THREAD record. */
		const struct ss_thread *t = slot_at(r->layout, i);
		uint32_t tid = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);
		uint64_t frees = __atomic_load_n(&t->written[MPR_LOST_FREE], __ATOMIC_ACQUIRE);

		a->ring[a->n] = ring_at(r, i);
		a->bytes[a->n] = ring_ready(&a->ring[a->n]);
		a->ends[a->n] = frees != r->frees_seen[i];
		a->segment[a->n] = (struct segment){.slot = i, .tid = tid};
		a->total += a->bytes[a->n];
		a->n += a->bytes[a->n] || a->ends[a->n];
		r->frees_seen[i] = frees;
	}
	return 0;
}

/* Moves the ready records up to time @end from the rings to a new batch; @with_ends: and the ends of
 * blocks after the last of them.  Such an end can be later than @end.  It waits in the aggregator,
 * which needs it before @end if another thread allocates the address again. */
static struct batch *take_batch(struct reader *r, struct ready *a, uint64_t end, bool with_ends)
{
	struct batch *b = batch_new(a->n);
	struct segment *fit;
	uint64_t sum = 0, used = 0, room = r->queue_ceiling / QUEUE_BATCH * 2;
	bool copy;

	if (!b)
		return NULL;
	for (uint32_t k = 0; k < a->n; k++) {
		uint64_t n =
		    end == UINT64_MAX ? a->bytes[k] : slice_up_to(&a->ring[k], a->bytes[k], end);

		if (!n && !(with_ends && a->ends[k]))
			continue;
		b->segment[b->nsegments] = a->segment[k];
		b->segment[b->nsegments].position = a->ring[k].at;
		b->segment[b->nsegments++].bytes = n;
		sum += n;
	}
	/* Of 10,000 rings, few have records in a slice; b->size counts only these. */
	fit = reallocarray(b->segment, b->nsegments + 1, sizeof(*fit));
	b->segment = fit ? fit : b->segment;
	/* A malicious target can give all records the same time: do not allocate memory for more
	 * than @room bytes. */
	copy = must_not_lose(r) || sum <= room;
	b->data = malloc(copy && sum ? sum : 1);
	if (!b->data) {
		batch_free(b);
		return NULL;
	}
	for (uint32_t k = 0, i = 0; k < a->n && i < b->nsegments; k++) {
		struct ring *ring = &a->ring[k];
		struct segment *s = &b->segment[i];
		struct ss_thread *t = slot_at(r->layout, s->slot);
		uint64_t to;

		if (a->segment[k].slot != s->slot)
			continue;
		to = ring->at + s->bytes + with_ends;
		s->nends = recent_ends(t, ring, to, b);
		if (copy) {
			ring_copy(ring, b->data + used, s->bytes);
			recent_read(t, ring, to, b->data + used, s->bytes);
		} else {
			count_dropped(r, t, ring, to, s->bytes);
		}
		ring_advance(ring, s->bytes);
		a->bytes[k] -= s->bytes;
		a->ends[k] = false;
		used += s->bytes;
		if (!copy)
			s->bytes = 0;
		i++;
	}
	if (!copy) {
		r->after_loss = true;
		used = 0;
	}
	b->read_at = clock_ticks();
	b->bytes = used;
	b->size = used + sizeof(*b) + b->nsegments * sizeof(*b->segment) +
		  b->ends.n * sizeof(*b->ends.at);
	return b;
}

static bool leaves_in_rings(struct reader *r);

/* Tells the agent how much to thin.  The queue is the integral of what is too much, so a pressure
 * that grows with its length settles where the aggregator can just follow. */
static void set_pressure(struct reader *r)
{
	struct ss_control *c = r->config->block;
	uint64_t bytes = queue_stats(r->shared->queue).bytes, first = r->queue_ceiling / 8;
	uint64_t pressure = bytes > first ? 1 + (bytes - first) / (r->queue_ceiling / 64 + 1) : 0;

	uint32_t least = __atomic_load_n(&r->shared->thin_least, __ATOMIC_RELAXED);

	if (pressure < least)
		pressure = least;
	__atomic_store_n(&c->pressure, (uint32_t)pressure, __ATOMIC_RELAXED);
	__atomic_store_n(&c->thin_from, pressure || c->thinned_out ? 0 : r->layout->ring_thin,
			 __ATOMIC_RELAXED);
}

/* Keeps what the agent records within what the recorder can follow, or within the budget. */
static void regulate(struct reader *r)
{
	if (r->layout->overhead_ppm)
		overhead_keep(&r->overhead, r->config->block, r->layout, r->shared);
	else if (r->layout->thins)
		set_pressure(r);
}

/* Waits between two slices of a round, and in the last round, so that records which can wait in
 * the rings are not dropped. */
static void wait_for_room(struct reader *r, enum round how)
{
	while (how == ROUND ? leaves_in_rings(r) : queue_is_full(r->shared->queue)) {
		if (how != ROUND)
			stall_look(r);
		if (how != ROUND_LAST)
			reader_heartbeat(r);
		regulate(r);
		usleep(1000);
	}
}

/*
 * A flush needs two rounds: the first one reads the ends of blocks, which are dated to its end, the
 * second one is complete up to there.  Return: the flush that a round is for that begins now and is
 * complete up to @until.
 */
static uint64_t flush_of_round(struct reader *r, uint64_t until, enum round how)
{
	uint64_t wanted = __atomic_load_n(&r->shared->barrier_wanted, __ATOMIC_ACQUIRE);

	if (how != ROUND)
		return wanted;
	if (r->barrier_next == r->barrier_sent && wanted != r->barrier_sent) {
		r->barrier_next = wanted;
		r->flush_at = UINT64_MAX;
	}
	return until >= r->flush_at ? r->barrier_next : r->barrier_sent;
}

/* Runs one round.  Return: the bytes drained. */
static uint64_t drain(struct reader *r, enum round how)
{
	uint64_t until = how == ROUND_LAST ? UINT64_MAX : complete_until(r), end;
	uint64_t barrier = flush_of_round(r, until, how), most;
	uint64_t taken = 0;
	struct slicer s = {.next = SLICE_BINS}; /* all in one slice */
	struct ready a;
	struct batch *b;
	int ret;

	reader_find_active(r, how != ROUND);
	ret = ready_find(r, &a);
	most = r->queue_ceiling / QUEUE_BATCH;
	/* Small steps keep the rings at a level, and so the agent at about the same weight. */
	if (r->layout->thins && most > r->queue_ceiling / STEPS + a.n * RING_STEP)
		most = r->queue_ceiling / STEPS + a.n * RING_STEP;
	if (!ret && a.total > most)
		slice_begin(&s, a.ring, a.bytes, a.n, how == ROUND_LAST ? clock_ticks() : until,
			    most);
	do {
		end = slice_next(&s);
		/* Records later than the round's end wait in the aggregator, or in the rings for
		 * the next recorder. */
		if (how == ROUND_KEEP && end > until)
			end = until;
		b = ret ? NULL : take_batch(r, &a, end, how != ROUND_KEEP);
		if (!b)
			break;
		taken += b->bytes;
		/* These batches are put into the queue without a limit, so wait until there is
		 * room. */
		if (how != ROUND && b->bytes)
			wait_for_room(r, how);
		/* The end of a slice waits for the next one: a record of another thread whose time
		 * is slightly too late can belong before it (record/order/overtaken.h). */
		b->until = end < until ? end - READER_REORDER_TICKS : until;
		b->barrier = end < until ? r->barrier_sent : barrier;
		if (!batch_is_empty(b) || b->barrier != r->barrier_sent || how != ROUND ||
		    r->after_loss || wants_news(r) ||
		    __atomic_load_n(&r->shared->view_wanted, __ATOMIC_ACQUIRE))
			hand_over(r, b, how != ROUND);
		else
			batch_free(b);
		regulate(r);
		if (how == ROUND && end < until)
			wait_for_room(r, how);
	} while (end < until);
	if (b)
		r->barrier_sent = barrier;
	if (b && r->flush_at == UINT64_MAX)
		r->flush_at = clock_ticks();
	r->settling |= taken != 0;
	ready_free(&a);
	return taken;
}

/* Sleeps until the agent reports that a quarter of a ring is new, or for a time that grows while
 * rounds are quiet.  An agent that is not permitted system calls cannot wake the reader. */
static void wait_for_agent(struct reader *r, uint64_t came)
{
	struct timespec timeout = {0};

	if (came >= r->layout->ring_size / QUIET_SHARE || !r->config->block->may_syscall)
		r->sleep_ms = SLEEP_MS;
	else if (r->sleep_ms < MOST_SLEEP_MS)
		r->sleep_ms *= 2;
	timeout.tv_nsec = r->sleep_ms * 1000000;

	__atomic_store_n(&r->config->block->reader_sleeps, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &r->config->block->reader_sleeps, FUTEX_WAIT, 1, &timeout, NULL, 0);
	__atomic_store_n(&r->config->block->reader_sleeps, 0, __ATOMIC_RELAXED);
}

void reader_wake(struct ss_control *block)
{
	__atomic_store_n(&block->reader_sleeps, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &block->reader_sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Return: whether the rings must fill up, because the queue is full.  In lossless mode the agent
 * then waits, as long as the recorder extends the deadline.  If the disk stalls for two seconds,
 * the target no longer waits until the queue has room again. */
static bool leaves_in_rings(struct reader *r)
{
	bool full = queue_is_full(r->shared->queue), stalled = stall_look(r);

	r->gave_up = full && (r->gave_up || stalled);
	return full && holds_back(r);
}

void *reader_run(void *arg)
{
	struct reader *r = arg;

	/* Best effort: records are lost if the reader does not run in time. */
	r->sleep_ms = SLEEP_MS;
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	privileges_keep(PRIVILEGES_NONE);
	while (!__atomic_load_n(&r->shared->stop, __ATOMIC_ACQUIRE)) {
		uint64_t n;

		reader_heartbeat(r);
		regulate(r);
		if (leaves_in_rings(r)) {
			usleep(1000);
			continue;
		}
		n = drain(r, ROUND);
		if (r->barrier_next != r->barrier_sent)
			sched_yield();
		else if (n < r->layout->ring_size / 8)
			wait_for_agent(r, n);
	}
	/* So that the last round includes all records that earlier rounds left as too late. */
	if (r->shared->keep)
		usleep(1000);
	wait_for_room(r, r->shared->keep ? ROUND_KEEP : ROUND_LAST);
	drain(r, r->shared->keep ? ROUND_KEEP : ROUND_LAST);
	if (r->shared->keep && !r->layout->lossless)
		heartbeat(r, KEEP_S);
	queue_end(r->shared->queue);
	return NULL;
}
