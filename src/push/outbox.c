/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/outbox.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/fnv.h"
#include "lib/temporary.h"
#include "lib/thread.h"
#include "push/body.h"
#include "push/http.h"
#include "push/spool.h"

#define FIRST_PAUSE_MS 1000u
#define MOST_PAUSE_MS  300000u
#define MOST_RETRY_S   3600u /* that a server can ask for */
#define NS_PER_MS      1000000ull

struct outbox {
	struct outbox_config c;
	struct http *http;
	char own[PATH_MAX]; /* a spool of its own; "": the user's */
	pthread_t thread;
	bool started;	/* the thread */
	bool cancelled; /* the request that is sent is given up */

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	struct spool spool;
	struct outbox_counts counts;
	bool ending;
};

/* Half of @ms up to all of it, so that many recorders do not come back to a server at the same moment. */
static uint64_t jittered(uint64_t ms)
{
	uint32_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return ms / 2 + random % (ms / 2 + 1);
}

/* Waits with the lock until @ms have passed, until the thread is to end, or if @work until there is a request. */
static void pause_for(struct outbox *s, uint64_t ms, bool work)
{
	const uint64_t until = mono_ns() + ms * NS_PER_MS;
	const struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
	const bool ending = s->ending;

	while (!s->cancelled && s->ending == ending) {
		if (pthread_cond_timedwait(&s->changed, &s->lock, &at) == ETIMEDOUT || work)
			break;
	}
}

enum outcome { SENT, REJECTED, LATER };

/* Sends a request.  @why: set unless it was taken. */
static enum outcome send_one(struct outbox *s, const struct spooled *r, char *why, size_t size,
			     uint64_t *retry_after_s)
{
	const struct destination *d = s->c.destination;
	struct http_answer *a = malloc(sizeof(*a));
	enum outcome out = LATER;
	char *url = NULL;

	*retry_after_s = 0;
	snprintf(why, size, "out of memory");
	if (a && asprintf(&url, "%s%s", d->url, r->query) >= 0) {
		const struct http_request request = {.url = url,
						     .type = body_type(d->kind),
						     .encoding = body_encoding(d->kind),
						     .body = r->body,
						     .n = r->n,
						     .header = (const char *const *)d->header.at};

		if (http_post(s->http, &request, &s->cancelled, a)) {
			snprintf(why, size, "memprof ended");
		} else if (a->status / 100 == 2) {
			out = body_accepted(d->kind, a, why, size) ? SENT : REJECTED;
		} else if (!a->status) {
			snprintf(why, size, "%s", a->why);
		} else {
			snprintf(why, size, "HTTP status %ld: %.100s", a->status, a->body);
			*retry_after_s =
			    a->retry_after_s < MOST_RETRY_S ? a->retry_after_s : MOST_RETRY_S;
			if (a->status / 100 == 4 && a->status != 408 && a->status != 429)
				out = REJECTED;
		}
	}
	free(url);
	free(a);
	return out;
}

static void *outbox_thread(void *arg)
{
	struct outbox *s = arg;
	uint64_t pause_ms = FIRST_PAUSE_MS;
	bool failing = false;

	pthread_mutex_lock(&s->lock);
	while (!s->cancelled) {
		struct spooled r;
		char why[300];
		uint64_t retry_after_s;
		enum outcome out;
		int ret = spool_take(&s->spool, &r);

		if (ret <= 0) {
			if (s->ending)
				break;
			pause_for(s, MOST_PAUSE_MS, true);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		out = send_one(s, &r, why, sizeof(why), &retry_after_s);
		spool_done(&s->spool, &r, out == LATER);
		if (out != SENT && (!failing || out == REJECTED))
			s->c.report(s->c.ctx, s->c.destination, why);
		else if (out == SENT && failing)
			s->c.report(s->c.ctx, s->c.destination, NULL);
		failing = out != SENT;
		pthread_mutex_lock(&s->lock);
		s->counts.sent += out == SENT;
		s->counts.rejected += out == REJECTED;
		if (out != LATER) {
			pause_ms = FIRST_PAUSE_MS;
			continue;
		}
		pause_for(s, retry_after_s ? retry_after_s * 1000 : jittered(pause_ms), false);
		pause_ms = pause_ms * 2 < MOST_PAUSE_MS ? pause_ms * 2 : MOST_PAUSE_MS;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int open_spool(struct outbox *s, struct mp_err *err)
{
	const char *url = s->c.destination->url;
	char path[PATH_MAX];
	int ret;

	/* Each destination has its own, whose name does not tell the URL. */
	if (s->c.spool && (mkdir(s->c.spool, 0700) == 0 || errno == EEXIST)) {
		snprintf(path, sizeof(path), "%s/%016" PRIx64, s->c.spool, fnv_text(url));
		return spool_open(&s->spool, path, s->c.limit, err);
	}
	if (s->c.spool)
		return mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot make the directory %.200s: %s",
			       s->c.spool, strerror(errno));
	ret = temporary_make("memprof-push", s->own, sizeof(s->own), err);
	return ret ? ret : spool_open(&s->spool, s->own, s->c.limit, err);
}

static void free_outbox(struct outbox *s)
{
	temporary_remove(s->own);
	spool_close(&s->spool);
	http_free(s->http);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}

int outbox_open(const struct outbox_config *c, struct outbox **out, struct mp_err *err)
{
	struct outbox *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;
	int ret;

	if (!s)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	s->c = *c;
	s->spool.dir = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	ret = http_new(&s->http, err);
	if (!ret)
		ret = open_spool(s, err);
	if (ret) {
		free_outbox(s);
		return ret;
	}
	*out = s;
	return 0;
}

int outbox_start(struct outbox *s, struct mp_err *err)
{
	const int ret = thread_start(&s->thread, outbox_thread, s);

	s->started = !ret;
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s", strerror(-ret))
		   : 0;
}

void outbox_put(struct outbox *s, const char *query, const void *body, size_t n)
{
	pthread_mutex_lock(&s->lock);
	(void)spool_put(&s->spool, query, body, n);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

struct outbox_counts outbox_counts(struct outbox *s)
{
	struct outbox_counts c;

	pthread_mutex_lock(&s->lock);
	c = s->counts;
	c.dropped = s->spool.dropped;
	c.waiting = spool_count(&s->spool);
	pthread_mutex_unlock(&s->lock);
	return c;
}

struct outbox_counts outbox_stop(struct outbox *s, uint64_t ms)
{
	struct outbox_counts counts;
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(ms / 1000);
	if (s->started && pthread_timedjoin_np(s->thread, NULL, &until)) {
		pthread_mutex_lock(&s->lock);
		__atomic_store_n(&s->cancelled, true, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	counts = outbox_counts(s);
	free_outbox(s);
	return counts;
}
