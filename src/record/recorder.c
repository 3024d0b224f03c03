/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/thread.h"
#include "record/aggregator.h"
#include "record/blocks.h"
#include "record/live_file.h"
#include "record/losses.h"
#include "record/reader.h"
#include "record/stall.h"
#include "record/view.h"

#define DEFAULT_CEILING (256ull << 20)
#define MAX_MARKS	1000
#define LARGE		(1 << 20)
#define KEPT_FREE	(8 << 20)
#define LOOK_NS		100000000
#define HELD_EVENTS	(512u << 10) /* by culling; about 60 MiB */

/* Each thread uses only its own state and what is shared. */
struct recorder {
	struct recorder_config config; /* constant while the threads run, as is the layout */
	char *text[3];		       /* the strings of config.info; owned */
	struct block_layout layout;
	pthread_t reader_thread, aggregator_thread;
	struct reader reader;
	/* The reader changes its state while the aggregator reads shared at every allocation, so
	 * they must not be on the same cache line.  At the end of shared is what the aggregator
	 * changes, so its own state can follow. */
	char apart[CACHE_LINE];
	struct recorder_shared shared;
	struct aggregator aggregator;
};

static int copy_layout(struct block_layout *l, const struct recorder_config *config)
{
	const struct ss_control *c = config->layout;

	*l = (struct block_layout){
	    .slots = (char *)config->block + c->slots,
	    .nslots = c->nslots,
	    .slot_stride = c->slot_stride,
	    .slot_ring = c->slot_ring,
	    .ring_size = c->ring_size,
	    .arena = (const uint64_t *)((const char *)config->block + c->arena),
	    .arena_words = c->arena_words,
	    .lossless = c->lossless,
	    .thins = c->ring_thin != UINT64_MAX,
	    .ring_thin = c->ring_thin,
	    .overhead_ppm = c->overhead_ppm,
	    .nsampled = c->nsampled,
	};
	return c->slots + c->nslots * c->slot_stride <= config->block_length &&
		       c->arena + 8 * c->arena_words <= config->block_length
		   ? 0
		   : -EPROTO;
}

static int shared_init(struct recorder_shared *s, uint32_t nslots, uint64_t queue_ceiling)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->clock_lock, NULL);
	pthread_cond_init(&s->flushed, NULL);
	s->queue = queue_new(queue_ceiling);
	s->active = calloc(nslots, sizeof(*s->active));
	return s->queue && s->active ? 0 : -ENOMEM;
}

static void shared_free(struct recorder_shared *s)
{
	queue_free(s->queue);
	free(s->active);
	vec_for_each (&s->marks, name)
		free(*name);
	vec_free(&s->marks);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->clock_lock);
	pthread_cond_destroy(&s->flushed);
}

/* Pieces and views have the strings, too, which the caller does not keep. */
static int copy_strings(struct recorder *r)
{
	struct mp_info *info = &r->config.info;
	const char **string[3] = {&info->executable, &info->cmdline, &info->memprof_version};

	for (int i = 0; i < 3; i++) {
		r->text[i] = strdup(*string[i] ? *string[i] : "");
		if (!r->text[i])
			return -ENOMEM;
		*string[i] = r->text[i];
	}
	return 0;
}

static int allocate(struct recorder *r)
{
	uint64_t ceiling = r->config.queue_ceiling;

	if (copy_strings(r) ||
	    shared_init(&r->shared, r->layout.nslots, ceiling ? ceiling : DEFAULT_CEILING) ||
	    reader_init(&r->reader, &r->config, &r->layout, &r->shared) ||
	    aggregator_init(&r->aggregator, &r->config, &r->layout, &r->shared))
		return -ENOMEM;
	return 0;
}

static uint64_t all_lost(const struct aggregator *a)
{
	struct mp_losses l = losses_now(a);

	return mp_losses_events(&l);
}

/* Return: 0 or a negative errno. */
static int start_threads(struct recorder *r)
{
	int ret = thread_start(&r->aggregator_thread, aggregator_run, &r->aggregator);

	r->reader.stall.aggregator = r->aggregator_thread;
	if (!ret && (ret = thread_start(&r->reader_thread, reader_run, &r->reader))) {
		queue_end(r->shared.queue);
		pthread_join(r->aggregator_thread, NULL);
	}
	return ret;
}

/* Creates the file in which the recording begins.  Return: 0, or a negative errno with @err. */
static int open_file(struct recorder *r, struct mp_err *err)
{
	struct mpf_writer **file = &r->aggregator.file;
	int ret;

	if (r->config.file > 0) {
		ret = fcntl(r->config.file, F_DUPFD_CLOEXEC, 0);
		return ret < 0 ? mp_fail(err, MP_EXIT_OUTPUT, -errno, "%s", strerror(errno))
			       : mpf_create_in(ret, r->config.path, &r->config.info, file, err);
	}
	if (!r->config.live_only)
		return mpf_create(r->config.path, &r->config.info, file, err);
	ret = live_file_check(&r->config, err);
	return ret ? ret : mpf_create_nowhere(file);
}

int recorder_start(const struct recorder_config *config, struct recorder **out, struct mp_err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	struct aggregator *a;
	struct timespec now;
	int ret;

	if (!r)
		return -ENOMEM;
	a = &r->aggregator;
	r->config = *config;
	r->shared.paused = config->select.paused;
	r->shared.selects = r->shared.paused || config->select.nthreads;
	ret = copy_layout(&r->layout, config);
	if (ret) {
		free(r);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "the session block is damaged");
	}
	/* Makes glibc return large batches to the kernel when they are freed, which another thread
	 * does.  The memory of smaller ones, of which there are always some, is reused: page faults
	 * would take a tenth of the recorder's time. */
	mallopt(M_MMAP_THRESHOLD, LARGE);
	mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
	if (allocate(r)) {
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	clock_start(&r->shared.clock);
	clock_gettime(CLOCK_REALTIME, &now);
	r->config.info.start_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
				       clock_ns(&r->shared.clock, clock_ticks());
	ret = open_file(r, err);
	if (ret) {
		recorder_free(r);
		return ret;
	}
	ret = piece_start(a);
	if (ret) {
		mpf_close(a->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot record in pieces: %s",
			       strerror(-ret));
	}
	if (config->info.cull_ns &&
	    !(a->cull = cull_new(&(struct cull_config){.age_ns = config->info.cull_ns,
						       .most = HELD_EVENTS,
						       .let_go = block_let_go,
						       .ahead = block_ahead,
						       .ctx = a},
				 a->file))) {
		mpf_close(a->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	levels_begin(&a->levels, 0);
	if (config->carry) {
		a->losses = config->carry->losses;
		reader_find_active(&r->reader, true);
		a->losses_seen = all_lost(a);
	}
	/* The target can run before the recorder's threads do. */
	if (r->layout.overhead_ppm)
		overhead_begin(&r->reader.overhead, &r->layout, config->pid);
	reader_heartbeat(&r->reader);
	ret = start_threads(r);
	if (ret) {
		mpf_close(a->file);
		recorder_free(r);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s",
			       strerror(-ret));
	}
	/* A thread that serves requests can be polling this pointer. */
	__atomic_store_n(out, r, __ATOMIC_RELEASE);
	return 0;
}

struct recorder_progress recorder_progress(struct recorder *r)
{
	struct recorder_progress p;

	pthread_mutex_lock(&r->shared.lock);
	p = r->shared.shown;
	p.cost = r->shared.cost;
	pthread_mutex_unlock(&r->shared.lock);
	p.stalled = __atomic_load_n(&r->shared.stalled, __ATOMIC_RELAXED);
	return p;
}

void recorder_request_end(struct recorder *r)
{
	__atomic_store_n(&r->config.block->detach_requested, 1, __ATOMIC_RELEASE);
}

void recorder_pause(struct recorder *r, bool paused)
{
	pthread_mutex_lock(&r->shared.lock);
	if (paused)
		__atomic_store_n(&r->shared.selects, true, __ATOMIC_RELAXED);
	if (paused != recorder_is_paused(r))
		__atomic_store_n(&r->shared.paused, clock_ticks() << 1 | paused, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&r->shared.lock);
}

bool recorder_is_paused(struct recorder *r)
{
	return __atomic_load_n(&r->shared.paused, __ATOMIC_RELAXED) & 1;
}

bool recorder_is_mark(const char *name)
{
	return *name && strlen(name) <= RECORDER_MARK_MOST && !strchr(name, '\n');
}

int recorder_mark(struct recorder *r, const char *name)
{
	char *copy;
	int ret;

	if (r->config.live_only)
		return -EOPNOTSUPP;
	copy = strdup(name);
	ret = copy ? 0 : -ENOMEM;
	pthread_mutex_lock(&r->shared.lock);
	if (copy && r->shared.marks.n >= MAX_MARKS)
		ret = -EAGAIN;
	if (!ret)
		ret = vec_push(&r->shared.marks, copy);
	pthread_mutex_unlock(&r->shared.lock);
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
	mine = __atomic_add_fetch(&r->shared.barrier_wanted, 1, __ATOMIC_ACQ_REL);
	reader_wake(r->config.block);
	pthread_mutex_lock(&r->shared.lock);
	while (r->shared.boundary.barrier < mine && !r->shared.ended)
		pthread_cond_wait(&r->shared.flushed, &r->shared.lock);
	*b = r->shared.boundary;
	ret = r->shared.boundary.barrier >= mine ? 0 : -ESHUTDOWN;
	pthread_mutex_unlock(&r->shared.lock);
	if (!ret && r->config.delivered)
		ret = r->config.delivered(r->config.ctx, b->file_bytes);
	return ret;
}

bool recorder_is_live_only(const struct recorder *r)
{
	return r->config.live_only;
}

int recorder_save(struct recorder *r, struct recorder_boundary *b)
{
	struct stat st;
	int ret;

	__atomic_store_n(&r->shared.save_wanted, true, __ATOMIC_RELEASE);
	ret = recorder_flush(r, b);
	if (!ret)
		ret = piece_thread_closed(&r->aggregator.piece.closer);
	if (!ret && !stat(r->config.path, &st))
		b->file_bytes = (uint64_t)st.st_size;
	return ret;
}

int recorder_view(struct recorder *r, int fd, uint32_t from, struct recorder_view *out,
		  struct mp_err *err)
{
	struct view v = {.from = from};
	int ret;

	if (r->config.info.what != MP_ALLOCATIONS) {
		close(fd);
		return mp_fail(err, MP_EXIT_USAGE, -EOPNOTSUPP,
			       "a recording of page faults cannot be viewed");
	}
	ret = mpf_create_in(fd, "the view", &r->config.info, &v.end.file, err);
	if (ret)
		return ret;
	ret = view_take(&r->shared, r->config.block, &v);
	*out = (struct recorder_view){.time_ns = v.end.finish.end_ns,
				      .behind_ns = v.behind_ns,
				      .paused = recorder_is_paused(r),
				      .thins = r->layout.thins && !r->layout.overhead_ppm,
				      .least = r->shared.thin_least};
	if (ret)
		mpf_close_open_ended(v.end.file);
	else
		ret = piece_finish(&r->config, &v.end);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "%s", strerror(-ret)) : 0;
}

int recorder_thin(struct recorder *r, uint32_t least)
{
	if (!r->layout.thins || r->layout.overhead_ppm)
		return -EOPNOTSUPP;
	__atomic_store_n(&r->shared.thin_least, least, __ATOMIC_RELAXED);
	return 0;
}

void recorder_let_go(struct recorder *r)
{
	__atomic_store_n(&r->shared.let_go, true, __ATOMIC_RELEASE);
}

void recorder_keep(struct recorder *r)
{
	r->shared.keep = true;
}

/* Waits for the aggregator and updates the stall state, so that a process which waits for this
 * recorder can report that the disk is the cause. */
static void join_aggregator(struct recorder *r)
{
	struct timespec until;

	do {
		stall_look(&r->reader);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(r->aggregator_thread, NULL, &until) == ETIMEDOUT);
	r->config.block->recorder_stalled = 0;
}

/* Writes the binaries of all pieces, which only the last piece contains. */
static void embed(const struct aggregator *a, const struct recorder_ending *ending)
{
	uint64_t n, *pc = piece_addresses(a, !a->config->live_only, &n);

	if (pc)
		ending->embed(a->config->ctx, a->file, pc, n);
	free(pc);
}

/* Begins the last file of a recording of the live heap.  Return: 0, or a negative errno: then all that
 * follows is dropped. */
static int begin_live_file(struct aggregator *a)
{
	struct mpf_writer *nowhere = a->file;
	int ret;

	piece_thread_wait(&a->piece.closer);
	ret = live_file_begin(a);
	if (!ret)
		mpf_close(nowhere);
	return ret;
}

/* Gives the file that was closed with the result @closed its name.  Return: 0 or a negative errno. */
static int publish(struct piece_thread *t, int closed)
{
	t->closed = closed;
	piece_thread_give(t, PIECE_PUBLISH);
	closed = piece_thread_closed(t);
	piece_thread_stop(t);
	return closed;
}

/* A view that cannot be written is empty or not complete, which its reader sees. */
static void put_last_view(struct recorder *r)
{
	const uint64_t end = r->shared.shown.duration_ns;
	struct mp_err err = {0};
	struct view v = {0};

	if (!r->config.last_view ||
	    mpf_create_in(r->config.last_view, "the last view", &r->config.info, &v.end.file, &err))
		return;
	view_fill(&r->aggregator, &v, end, end);
	(void)piece_finish(&r->config, &v.end);
}

int recorder_stop(struct recorder *r, struct mp_finish *finish, struct mp_losses *losses,
		  const struct recorder_ending *ending)
{
	struct aggregator *a = &r->aggregator;
	uint64_t *pc, n, bytes;
	int ret, pieces;

	__atomic_store_n(&r->shared.stop, true, __ATOMIC_RELEASE);
	pthread_join(r->reader_thread, NULL);
	join_aggregator(r);
	put_last_view(r);
	pieces = r->config.live_only ? begin_live_file(a) : piece_thread_stop(&a->piece.closer);
	*losses = losses_now(a);
	finish->end_ns = r->shared.shown.duration_ns;
	finish->peak_live_bytes = a->levels.peak.bytes;
	finish->peak_live_blocks = a->levels.peak.blocks;
	finish->peak_time_ns = a->levels.peak.time_ns;
	if (ending && r->config.info.what == MP_ALLOCATIONS)
		piece_put_index(a, ending);
	pc = ending ? piece_addresses(a, false, &n) : NULL;
	if (pc)
		ending->symbolize(r->config.ctx, a->file, pc, n);
	free(pc);
	mpf_put_losses(a->file, losses);
	mpf_put_finish(a->file, finish);
	if (ending && ending->embed) /* last, so that a full disk affects only these */
		embed(a, ending);
	mpf_flush(a->file);
	bytes = a->piece.bytes_before + mpf_bytes(a->file);
	ret = mpf_close(a->file);
	a->file = NULL;
	if (r->config.live_only && !pieces)
		ret = publish(&a->piece.closer, ret);
	pthread_mutex_lock(&r->shared.lock); /* other threads can call recorder_progress() */
	r->shared.shown.file_bytes = bytes;
	r->shared.shown.pieces_deleted = a->piece.closer.kept.deleted;
	r->shared.shown.delete_error = a->piece.closer.kept.error;
	pthread_mutex_unlock(&r->shared.lock);
	return pieces ? pieces : ret;
}

const char *recorder_oldest_piece(const struct recorder *r)
{
	const struct kept_pieces *kept = &r->aggregator.piece.closer.kept;

	return kept->list.n ? kept->list.at[0].path : r->config.path;
}

uint32_t recorder_top(struct recorder *r, enum recorder_top_by by, struct recorder_top *out,
		      uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t id = 1; id < r->aggregator.stacks.n; id++) {
		const struct stack *s = &r->aggregator.stacks.at[id];
		struct stack_level live = levels_of(&r->aggregator.levels, id);
		struct recorder_top top = {id, s->n, s->flags, (int64_t)live.live_bytes,
					   (int64_t)live.live_blocks};
		uint32_t k;

		if (by == RECORDER_MAPPED) {
			struct mapped_tally mapped = tallies_mapped(&r->aggregator.tallies, id);

			top.bytes = (int64_t)mapped.bytes;
			top.count = (int64_t)mapped.mappings;
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
	stacks_pcs(&r->aggregator.stacks, top->stack, pc);
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	aggregator_free(&r->aggregator);
	reader_free(&r->reader);
	shared_free(&r->shared);
	for (int i = 0; i < 3; i++)
		free(r->text[i]);
	free(r);
}
