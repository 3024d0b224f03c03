/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/recorder.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "record/internal.h"

#define DEFAULT_CEILING (256ull << 20)
/* Percent: 24 to 31 bytes per live block; 80 percent would cost a third of the speed */
#define LIVE_LOAD   65
#define STACKS_LOAD 60
#define MAX_MARKS   1000
#define LARGE	    (128 << 10)
#define LOOK_NS	    100000000

static int copy_layout(struct recorder *r)
{
	const struct ss_control *c = r->config.layout;

	r->nslots = c->nslots;
	r->slots = c->slots;
	r->slot_stride = c->slot_stride;
	r->slot_ring = c->slot_ring;
	r->ring_size = c->ring_size;
	r->lossless = c->lossless;
	r->arena = c->arena;
	r->arena_words = c->arena_words;
	return r->slots + r->nslots * r->slot_stride <= r->config.block_length &&
		       r->arena + 8 * r->arena_words <= r->config.block_length
		   ? 0
		   : -EPROTO;
}

static uint64_t all_lost(struct recorder *r)
{
	struct mp_losses l = recorder_losses(r);

	return mp_losses_events(&l);
}

int recorder_start(const struct recorder_config *config, struct recorder **out, struct mp_err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	sigset_t all, before;
	struct timespec now;
	int ret;

	if (!r)
		return -ENOMEM;
	r->config = *config;
	r->paused = config->select.paused;
	r->selects = r->paused || config->select.nthreads;
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->clock_lock, NULL);
	pthread_cond_init(&r->flushed, NULL);
	ret = copy_layout(r);
	if (ret) {
		free(r);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "the session block is damaged");
	}
	r->queue_ceiling = config->queue_ceiling ? config->queue_ceiling : DEFAULT_CEILING;
	/* Makes glibc return large batches to the kernel when they are freed, which another thread
	 * does. */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	r->queue = queue_new(r->queue_ceiling);
	r->live = live_new(LIVE_LOAD);
	r->slot = calloc(r->nslots, sizeof(*r->slot));
	r->active = calloc(r->nslots, sizeof(*r->active));
	r->is_active = calloc(r->nslots, sizeof(*r->is_active));
	r->stack_of_word = live_new(STACKS_LOAD);
	if (!r->queue || !r->live || !r->slot || !r->active || !r->is_active || !r->stack_of_word ||
	    stacks_init(&r->stacks)) {
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	clock_start(&r->clock);
	clock_gettime(CLOCK_REALTIME, &now);
	r->config.info.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
				       clock_ns(&r->clock, clock_ticks());
	ret = mpf_create(config->path, &r->config.info, &r->file, err);
	if (ret) {
		recorder_free(r);
		return ret;
	}
	ret = piece_start(r);
	if (ret) {
		mpf_close(r->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot record in pieces: %s",
			       strerror(-ret));
	}
	if (config->cull_ns && !(r->cull = cull_new(config->cull_ns, r->file))) {
		mpf_close(r->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	if (config->carry) {
		r->losses = config->carry->losses;
		reader_find_active(r, true);
		r->losses_seen = all_lost(r);
	}
	/* The target can run before the recorder's threads do. */
	reader_heartbeat(r);
	/* Only the main thread handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&r->aggregator, NULL, aggregator_run, r);
	if (!ret && (ret = pthread_create(&r->reader, NULL, reader_run, r))) {
		queue_end(r->queue);
		pthread_join(r->aggregator, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret) {
		mpf_close(r->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, -ret, "cannot start a thread: %s",
			       strerror(ret));
	}
	/* A thread that serves requests can be polling this pointer. */
	__atomic_store_n(out, r, __ATOMIC_RELEASE);
	return 0;
}

struct recorder_progress recorder_progress(struct recorder *r)
{
	struct recorder_progress p;

	pthread_mutex_lock(&r->lock);
	p = r->shown;
	pthread_mutex_unlock(&r->lock);
	p.stalled = __atomic_load_n(&r->stalled, __ATOMIC_RELAXED);
	return p;
}

void recorder_pause(struct recorder *r, bool paused)
{
	pthread_mutex_lock(&r->lock);
	if (paused)
		__atomic_store_n(&r->selects, true, __ATOMIC_RELAXED);
	if (paused != recorder_is_paused(r))
		__atomic_store_n(&r->paused, clock_ticks() << 1 | paused, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&r->lock);
}

bool recorder_is_paused(struct recorder *r)
{
	return __atomic_load_n(&r->paused, __ATOMIC_RELAXED) & 1;
}

int recorder_mark(struct recorder *r, const char *name)
{
	char *copy = strdup(name);
	int ret = copy ? 0 : -ENOMEM;

	pthread_mutex_lock(&r->lock);
	if (copy && r->marks.n >= MAX_MARKS)
		ret = -EAGAIN;
	if (!ret)
		ret = vec_push(&r->marks, copy);
	pthread_mutex_unlock(&r->lock);
	if (ret)
		free(copy);
	return ret;
}

int recorder_flush(struct recorder *r, struct recorder_boundary *b)
{
	uint64_t asked = clock_ticks(), mine;
	int ret;

	/* The reader's round ends this long before the current time. */
	while (clock_ticks() <= asked + READER_REORDER_TICKS)
		sched_yield();
	mine = __atomic_add_fetch(&r->barrier_wanted, 1, __ATOMIC_ACQ_REL);
	reader_wake(r);
	pthread_mutex_lock(&r->lock);
	while (r->boundary.barrier < mine && !r->ended)
		pthread_cond_wait(&r->flushed, &r->lock);
	*b = r->boundary;
	ret = r->boundary.barrier >= mine ? 0 : -ESHUTDOWN;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

void recorder_let_go(struct recorder *r)
{
	__atomic_store_n(&r->let_go, true, __ATOMIC_RELEASE);
}

void recorder_keep(struct recorder *r)
{
	r->keep = true;
}

/* Waits for the aggregator and updates the stall state, so that a process which waits for this
 * recorder can report that the disk is the cause. */
static void join_aggregator(struct recorder *r)
{
	struct timespec until;

	do {
		stall_look(r);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(r->aggregator, NULL, &until) == ETIMEDOUT);
	r->config.block->recorder_stalled = 0;
}

/* Writes the binaries of all pieces, which only the last piece contains. */
static void embed(struct recorder *r, const struct recorder_ending *ending)
{
	uint64_t n, *pc = piece_addresses(r, true, &n);

	if (pc)
		ending->embed(r->config.ctx, r->file, pc, n);
	free(pc);
}

int recorder_stop(struct recorder *r, struct mp_finish *finish, struct mp_losses *losses,
		  const struct recorder_ending *ending)
{
	uint64_t *pc, n;
	int ret, pieces;

	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->reader, NULL);
	join_aggregator(r);
	pieces = piece_stop(r);
	*losses = recorder_losses(r);
	finish->end_ns = r->shown.duration_ns;
	finish->peak_live_bytes = r->peak_bytes;
	finish->peak_live_blocks = r->peak_blocks;
	finish->peak_time_ns = r->peak_time_ns;
	if (ending && r->config.info.what == MP_ALLOCATIONS)
		piece_put_index(r, ending);
	pc = ending ? piece_addresses(r, false, &n) : NULL;
	if (pc)
		ending->symbolize(r->config.ctx, r->file, pc, n);
	free(pc);
	mpf_put_losses(r->file, losses);
	mpf_put_finish(r->file, finish);
	if (ending && ending->embed) /* last, so that a full disk affects only these */
		embed(r, ending);
	mpf_flush(r->file);
	r->shown.file_bytes = r->piece.bytes_before + mpf_bytes(r->file);
	ret = mpf_close(r->file);
	r->file = NULL;
	return pieces ? pieces : ret;
}

uint32_t recorder_top(struct recorder *r, enum recorder_top_by by, struct recorder_top *out,
		      uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t id = 1; id < r->stacks.n; id++) {
		const struct stack *s = &r->stacks.at[id];
		struct recorder_top top = {id, s->n, s->flags, s->live_bytes, s->live_blocks};
		uint32_t k;

		if (by == RECORDER_MAPPED) {
			top.bytes = (int64_t)s->mapped_bytes;
			top.count = (int64_t)s->mappings;
		}
		if (top.bytes <= 0 || (n == max && top.bytes <= out[n - 1].bytes))
			continue;
		if (n < max)
			n++;
		for (k = n - 1; k && out[k - 1].bytes < top.bytes; k--)
			out[k] = out[k - 1];
		out[k] = top;
	}
	return n;
}

void recorder_pcs(const struct recorder *r, const struct recorder_top *top, uint64_t *pc)
{
	stacks_pcs(&r->stacks, top->stack, pc);
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	piece_stop(r);
	for (int i = 0; i < 3; i++)
		free(r->piece.text[i]);
	queue_free(r->queue);
	live_free(r->live);
	cull_free(r->cull);
	origins_free(r->origins);
	vec_free(&r->marks);
	stacks_free(&r->stacks);
	live_free(r->stack_of_word);
	free(r->slot);
	free(r->active);
	free(r->is_active);
	order_free(&r->order);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->clock_lock);
	pthread_cond_destroy(&r->flushed);
	free(r);
}
