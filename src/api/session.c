/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recording that a thread of the library makes. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "api/attach_options.h"
#include "api/error.h"
#include "api/sized.h"
#include "control/notices.h"
#include "control/orders.h"
#include "control/output_name.h"
#include "control/recording.h"
#include "inject/family.h"
#include "lib/thread.h"
#include "record/pieces/carry.h"

struct memprof_session {
	pthread_t thread;
	pid_t pid;
	struct attach_options options; /* copies of the caller's */
	struct recording_options o;
	struct notices notices;
	struct recording_orders orders;
	int stop, ended; /* eventfds: the recording shall end, has ended */
	/* Requests hold it for reading; to be taken away, the recorder needs it for writing. */
	pthread_rwlock_t serving;
	struct recorder *r;	/* NULL: none that takes requests */
	pthread_mutex_t saving; /* recorder_save() is for one thread at a time */
	pthread_mutex_t lock;	/* protects the following */
	pthread_cond_t changed;
	bool begun, over;
	int status; /* the recording's, when it is over */
	struct mp_err err;
	struct recorder_progress last; /* when there is no recorder any more */
	char path[4096];
};

/* ---------------------------------------------------------------- the session's thread -- */

static void on_message(void *ctx, const char *line)
{
	const struct attach_options *o = &((struct memprof_session *)ctx)->options;

	if (o->given.message)
		o->given.message(o->given.ctx, line);
}

static void on_error(void *ctx, const struct mp_err *err)
{
	struct memprof_session *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (!s->err.what[0])
		s->err = *err;
	pthread_mutex_unlock(&s->lock);
}

static void tell(struct memprof_session *s)
{
	const struct memprof_attach_options *o = &s->options.given;

	if (o->progress)
		o->progress(o->ctx, s);
}

static void on_begun(void *ctx, const struct recording_begun *b)
{
	struct memprof_session *s = ctx;

	if (s->options.given.to)
		snprintf(s->path, sizeof(s->path), "%s", b->path);
	else
		output_absolute(b->path, s->path, sizeof(s->path));
}

static void on_started(void *ctx)
{
	struct memprof_session *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->begun = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	tell(s);
}

static void on_progress(void *ctx, const struct recorder_progress *p, bool page_faults)
{
	(void)p;
	(void)page_faults;
	tell(ctx);
}

static void on_ended(void *ctx, const struct summary *sum)
{
	struct memprof_session *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->last = recorder_progress(sum->recorder);
	pthread_mutex_unlock(&s->lock);
}

static int on_open(void *ctx)
{
	return ((struct memprof_session *)ctx)->stop;
}

static enum recording_order on_order(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return ORDER_END;
}

static void on_serves(void *ctx, struct recorder *r)
{
	struct memprof_session *s = ctx;

	pthread_rwlock_wrlock(&s->serving);
	s->r = r;
	pthread_rwlock_unlock(&s->serving);
}

static void no_close(void *ctx, int fd)
{
	(void)ctx;
	(void)fd; /* the session's */
}

static int record(struct memprof_session *s)
{
	struct mp_err err = {0};
	struct target t;
	int status;

	if (target_look(&t, s->pid, &err))
		return notice_error(&s->notices, &err);
	if (!s->o.via_kernel && family_leave(&t, &err))
		status = notice_error(&s->notices, &err);
	else
		status = recording_run(&t, &s->o, false);
	target_close(&t);
	return status;
}

static void *session_thread(void *arg)
{
	struct memprof_session *s = arg;
	int status = record(s);
	bool begun;

	pthread_mutex_lock(&s->lock);
	begun = s->begun;
	s->over = true;
	s->status = status;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	eventfd_write(s->ended, 1);
	if (begun)
		tell(s);
	return NULL;
}

/* ---------------------------------------------------------------- attach, wait, stop -- */

static void prepare(struct memprof_session *s)
{
	pthread_rwlockattr_t writer_first;

	s->notices = notices_silent(s);
	s->notices.message = on_message;
	s->notices.error = on_error;
	s->notices.begun = on_begun;
	s->notices.started = on_started;
	s->notices.progress = on_progress;
	s->notices.ended = on_ended;
	s->orders = (struct recording_orders){
	    .begin = on_open, .take = on_order, .serves = on_serves, .end = no_close, .ctx = s};
	pthread_mutex_init(&s->lock, NULL);
	/* Otherwise threads that ask all the time could keep the recording from its end. */
	pthread_rwlockattr_init(&writer_first);
	pthread_rwlockattr_setkind_np(&writer_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->serving, &writer_first);
	pthread_rwlockattr_destroy(&writer_first);
	pthread_mutex_init(&s->saving, NULL);
	pthread_cond_init(&s->changed, NULL);
}

static void destroy(struct memprof_session *s)
{
	if (s->stop >= 0)
		close(s->stop);
	if (s->ended >= 0)
		close(s->ended);
	pthread_cond_destroy(&s->changed);
	pthread_rwlock_destroy(&s->serving);
	pthread_mutex_destroy(&s->saving);
	pthread_mutex_destroy(&s->lock);
	attach_options_free(&s->options);
	free(s);
}

/* Return: as memprof_wait(), of a session that is over. */
static int result(struct memprof_session *s, struct memprof_error *err)
{
	int ret;

	pthread_mutex_lock(&s->lock);
	if (!s->status)
		ret = MEMPROF_OK;
	else if (s->err.what[0])
		ret = api_error(err, &s->err);
	else
		ret = api_fail(err, s->status, 0, "the recording %s is not complete", s->path);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/* Waits until the recording has begun or failed. */
static int wait_for_begin(struct memprof_session *s, struct memprof_error *err)
{
	bool begun;

	pthread_mutex_lock(&s->lock);
	while (!s->begun && !s->over)
		pthread_cond_wait(&s->changed, &s->lock);
	begun = s->begun;
	pthread_mutex_unlock(&s->lock);
	if (begun)
		return MEMPROF_OK;
	pthread_join(s->thread, NULL);
	return result(s, err);
}

int memprof_attach(pid_t pid, const struct memprof_attach_options *o, memprof_session **out,
		   struct memprof_error *err)
{
	struct memprof_session *s = calloc(1, sizeof(*s));
	struct mp_err why = {0};
	int ret;

	if (!s)
		return api_fail(err, MEMPROF_FAILURE, -ENOMEM, "out of memory");
	s->pid = pid;
	s->stop = s->ended = -1;
	prepare(s);
	ret = attach_options_take(o, &s->options, &s->o, &why);
	s->o.notices = &s->notices;
	s->o.orders = &s->orders;
	if (!ret && ((s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
		     (s->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0))
		ret = mp_fail(&why, MP_EXIT_FAILURE, -errno, "no event: %s", strerror(errno));
	if (!ret && (ret = thread_start(&s->thread, session_thread, s)))
		mp_fail(&why, MP_EXIT_FAILURE, ret, "cannot start a thread: %s", strerror(-ret));
	ret = ret ? api_error(err, &why) : wait_for_begin(s, err);
	if (ret)
		destroy(s);
	else
		*out = s;
	return ret;
}

int memprof_fd(const memprof_session *s)
{
	return s->ended;
}

int memprof_wait(memprof_session *s, int timeout_ms, struct memprof_error *err)
{
	struct pollfd p = {.fd = s->ended, .events = POLLIN};
	int n;

	while ((n = poll(&p, 1, timeout_ms)) < 0 && errno == EINTR)
		continue;
	if (n > 0)
		return result(s, err);
	return n ? api_fail(err, MEMPROF_FAILURE, -errno, "cannot wait: %s", strerror(errno))
		 : api_fail(err, MEMPROF_TIMEOUT, 0, "process %d is still being recorded", s->pid);
}

int memprof_stop(memprof_session *s, struct memprof_error *err)
{
	eventfd_write(s->stop, 1);
	return memprof_wait(s, -1, err);
}

void memprof_free(memprof_session *s)
{
	if (!s)
		return;
	memprof_stop(s, NULL);
	pthread_join(s->thread, NULL);
	destroy(s);
}

/* ---------------------------------------------------------------- requests -- */

/* Something to ask of the recorder. */
struct request {
	int (*ask)(struct recorder *r, const void *arg);
	const void *arg;
};

static int no_change(struct recorder *r, const void *arg)
{
	(void)r;
	(void)arg;
	return 0;
}

static int mark(struct recorder *r, const void *name)
{
	return recorder_mark(r, name);
}

static int set_paused(struct recorder *r, const void *paused)
{
	recorder_pause(r, *(const bool *)paused);
	return 0;
}

/* Asks the recorder, if there is one, and waits until all that happened before is in the file.  Return: 0 or a
 * negative errno, -ESHUTDOWN: the recording has ended. */
static int ask_recorder(struct memprof_session *s, const struct request *q,
			struct recorder_boundary *b)
{
	int ret = -ESHUTDOWN;

	pthread_rwlock_rdlock(&s->serving);
	if (s->r)
		ret = q->ask(s->r, q->arg);
	if (s->r && !ret && recorder_is_live_only(s->r)) {
		pthread_mutex_lock(&s->saving);
		ret = recorder_save(s->r, b);
		pthread_mutex_unlock(&s->saving);
	} else if (s->r && !ret) {
		ret = recorder_flush(s->r, b);
	}
	pthread_rwlock_unlock(&s->serving);
	return ret;
}

static int request(struct memprof_session *s, const struct request *q, struct memprof_position *p,
		   struct memprof_error *err)
{
	struct recorder_boundary b = {0};
	int ret = ask_recorder(s, q, &b);

	if (ret == -ESHUTDOWN)
		return api_fail(err, MEMPROF_ENDED, ret, "the recording of process %d has ended",
				s->pid);
	if (ret)
		return api_fail(err, ret == -EOPNOTSUPP ? MEMPROF_USAGE : MEMPROF_OUTPUT, ret,
				"the recording of process %d: %s", s->pid, strerror(-ret));
	if (p)
		sized_give(&(struct memprof_position){0, b.time_ns, b.events, b.file_bytes},
			   sizeof(*p), p);
	return MEMPROF_OK;
}

int memprof_flush(memprof_session *s, struct memprof_position *p, struct memprof_error *err)
{
	return request(s, &(struct request){no_change, NULL}, p, err);
}

int memprof_mark(memprof_session *s, const char *name, struct memprof_position *p,
		 struct memprof_error *err)
{
	if (!recorder_is_mark(name))
		return api_fail(err, MEMPROF_USAGE, -EINVAL,
				"the name of a mark is one line of at most %d bytes",
				RECORDER_MARK_MOST);
	return request(s, &(struct request){mark, name}, p, err);
}

int memprof_pause(memprof_session *s, struct memprof_position *p, struct memprof_error *err)
{
	return request(s, &(struct request){set_paused, &(const bool){true}}, p, err);
}

int memprof_resume(memprof_session *s, struct memprof_position *p, struct memprof_error *err)
{
	return request(s, &(struct request){set_paused, &(const bool){false}}, p, err);
}

const char *memprof_path(const memprof_session *s)
{
	return s->path;
}

void memprof_look(memprof_session *s, struct memprof_progress *out)
{
	struct recorder_progress p;
	bool paused = false, over;
	int status;

	pthread_rwlock_rdlock(&s->serving);
	if (s->r) {
		paused = recorder_is_paused(s->r);
		p = recorder_progress(s->r);
	} else {
		p = s->last;
	}
	pthread_rwlock_unlock(&s->serving);
	pthread_mutex_lock(&s->lock);
	over = s->over;
	status = s->status;
	pthread_mutex_unlock(&s->lock);
	sized_give(&(struct memprof_progress){.state = !over	? paused ? MEMPROF_IS_PAUSED
									 : MEMPROF_IS_RECORDING
						       : status ? MEMPROF_HAS_FAILED
								: MEMPROF_IS_COMPLETE,
					      .duration_ns = p.duration_ns,
					      .file_bytes = p.file_bytes,
					      .events = p.events,
					      .allocations = p.allocs,
					      .frees = p.frees,
					      .allocated_bytes = p.allocated_bytes,
					      .live_blocks = p.live_blocks,
					      .live_bytes = p.live_bytes,
					      .peak_live_bytes = p.peak_live_bytes,
					      .lost = p.lost,
					      .thinned = p.thinning.allocations,
					      .cost_ppm = p.cost.ppm,
					      .stalled = p.stalled},
		   sizeof(*out), out);
}
