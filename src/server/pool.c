/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/vec.h"
#include "server/message.h"
#include "server/reaper.h"
#include "server/status.h"
#include "server/worker.h"

/* Small answers fit in the pipe: then their worker does not wait for the client. */
#define PIPE_BYTES (1 << 20)

#define IDLE_MOST    4u
#define IDLE_SECONDS 300u

/* A client is slow in a second in which less was taken although there was more. */
#define SLOW_BYTES   (256u << 10)
#define SLOW_SECONDS 3u
#define WAIT_SECONDS 2u

/* How long a worker may take to notice that its client has left. */
#define CANCELLED_SECONDS 2u

#define SECOND 1000000000ull

struct worker {
	struct pool *pool;
	struct loop_watch watch; /* of the socket */
	pid_t pid;
	char *key;
	bool lasting;	 /* it stays when it is idle */
	struct job *job; /* NULL: idle */
	uint64_t idle_since;
};

struct job {
	void *request;	  /* NULL: cancelled */
	char *text, *key; /* text: the message to the worker */
	size_t size;
	bool lasting;
	int to;		       /* end of the pipe that the worker gets; -1: it has it */
	int from;	       /* the caller's, who closes it when the request is cancelled */
	struct worker *worker; /* NULL: waiting */
	bool begun;
	bool again;	/* the worker that it was given to had ended before */
	uint64_t since; /* when it began to wait, or its worker to work */
	uint64_t taken, taken_before;
	uint32_t slow; /* seconds */
};

struct pool {
	struct loop *loop;
	const struct recordings *recordings;
	struct pool_limits limits;
	struct pool_events events;
	VEC(struct worker *) workers;
	struct reaper ended;
	VEC(struct job *) waiting; /* in the order in which they came */
};

/* ------------------------------------------------------------------ jobs -- */

static void job_free(struct job *j)
{
	if (j->to >= 0)
		close(j->to);
	free(j->text);
	free(j->key);
	free(j);
}

static void stop_waiting(struct pool *p, struct job *j)
{
	for (size_t i = 0; i < p->waiting.n; i++) {
		if (p->waiting.at[i] != j)
			continue;
		p->waiting.n--;
		memmove(&p->waiting.at[i], &p->waiting.at[i + 1],
			(p->waiting.n - i) * sizeof(p->waiting.at[0]));
		return;
	}
}

/* Ends the job and tells its owner. */
static void job_end(struct pool *p, struct job *j, bool complete, unsigned int status,
		    const char *why)
{
	void *request = j->request;

	if (j->worker) {
		j->worker->job = NULL;
		j->worker->idle_since = mono_ns();
	}
	job_free(j);
	if (request)
		p->events.done(request, complete, status, why);
}

/* ------------------------------------------------------------------ workers -- */

static void worker_end(struct worker *w)
{
	struct pool *p = w->pool;

	loop_remove(p->loop, &w->watch);
	close(w->watch.fd);
	reaper_kill(&p->ended, w->pid);
	for (size_t i = 0; i < p->workers.n; i++) {
		if (p->workers.at[i] == w)
			p->workers.at[i] = p->workers.at[--p->workers.n];
	}
	free(w->key);
	free(w);
}

/* Ends a worker while it works. */
static void worker_fail(struct worker *w, unsigned int status, const char *why)
{
	struct pool *p = w->pool;
	struct job *j = w->job;

	if (j) {
		w->job = NULL;
		j->worker = NULL;
	}
	worker_end(w);
	if (j)
		job_end(p, j, false, status, why);
}

static void on_reply(void *ctx)
{
	struct worker *w = ctx;
	struct pool *p = w->pool;
	struct reply r;
	ssize_t n = recv(w->watch.fd, &r, sizeof(r), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(r) || !w->job) {
		worker_fail(w, HTTP_FAILURE,
			    "the process that read the recording ended unexpectedly; it may need "
			    "more memory (memprof server --memory)");
	} else if (r.kind == REPLY_HEAD || r.kind == REPLY_STREAM) {
		r.type[sizeof(r.type) - 1] = 0;
		w->job->begun = true;
		if (w->job->request)
			p->events.head(w->job->request, r.status, r.type);
		if (r.kind == REPLY_STREAM)
			job_end(p, w->job, true, r.status, "");
	} else {
		job_end(p, w->job, r.kind == REPLY_DONE, HTTP_FAILURE,
			"the answer could not be written");
	}
}

static struct worker *worker_new(struct pool *p, const char *key, bool lasting)
{
	struct worker *w = calloc(1, sizeof(*w));
	int sock[2];

	if (!w || !(w->key = strdup(key)) || vec_push(&p->workers, w))
		goto no_memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		goto no_socket;
	w->pid = fork();
	if (!w->pid)
		worker_run(sock[1], p->recordings, p->limits.memory);
	close(sock[1]);
	w->pool = p;
	w->lasting = lasting;
	w->watch = (struct loop_watch){.fd = sock[0], .ready = on_reply, .ctx = w};
	if (w->pid > 0 && !loop_add(p->loop, &w->watch, EPOLLIN))
		return w;
	close(sock[0]);
	if (w->pid > 0)
		reaper_kill(&p->ended, w->pid);
no_socket:
	p->workers.n--;
no_memory:
	if (w)
		free(w->key);
	free(w);
	return NULL;
}

static struct worker *longest_idle(const struct pool *p, uint32_t *idle)
{
	struct worker *found = NULL;

	*idle = 0;
	vec_for_each (&p->workers, w) {
		if ((*w)->job || (*w)->lasting)
			continue;
		(*idle)++;
		if (!found || (*w)->idle_since < found->idle_since)
			found = *w;
	}
	return found;
}

/* Return: the number of workers that the limit is about. */
static uint32_t count_workers(const struct pool *p)
{
	/* Those that are still ending have their memory, too. */
	uint32_t n = (uint32_t)p->ended.at.n;

	vec_for_each (&p->workers, w)
		n += !(*w)->lasting;
	return n;
}

/* Return: a new worker for @j; NULL: none can be had now.  @failed: set if one could not be made. */
static struct worker *add_worker(struct pool *p, const struct job *j, bool *failed)
{
	struct worker *w;

	if (!j->lasting && count_workers(p) >= p->limits.workers)
		return NULL;
	w = worker_new(p, j->key, j->lasting);
	*failed = !w;
	return w;
}

/* Return: an idle worker for @j; NULL: none can be had now.  There is one lasting worker for each
 * key, which answers its requests one after the other.  @failed: set if one could not be made. */
static struct worker *find_worker(struct pool *p, const struct job *j, bool *failed)
{
	struct worker *old;
	uint32_t idle;

	*failed = false;
	vec_for_each (&p->workers, w) {
		if (strcmp((*w)->key, j->key) != 0)
			continue;
		if (!(*w)->job)
			return *w;
		if (j->lasting)
			return NULL;
	}
	old = j->lasting ? NULL : longest_idle(p, &idle);
	if (old && (count_workers(p) >= p->limits.workers || idle >= IDLE_MOST))
		worker_end(old);
	return add_worker(p, j, failed);
}

/* Ends a job that no worker has. */
static void refuse_job(struct pool *p, struct job *j, const char *why)
{
	stop_waiting(p, j);
	job_end(p, j, false, HTTP_UNAVAILABLE, why);
}

static void start_job(struct pool *p, struct worker *w, struct job *j)
{
	int ret = message_send(w->watch.fd, j->text, j->size, j->to);

	if (ret) {
		/* It ended while it was idle: another one can answer. */
		worker_end(w);
		if (!j->again && (ret == -EPIPE || ret == -ECONNRESET))
			j->again = true;
		else
			refuse_job(p, j, "the request could not be started");
		return;
	}
	stop_waiting(p, j);
	close(j->to);
	j->to = -1;
	w->job = j;
	j->worker = w;
	j->since = mono_ns();
}

static bool all_idle(const struct pool *p)
{
	vec_for_each (&p->workers, w) {
		if ((*w)->job)
			return false;
	}
	return true;
}

void pool_dispatch(struct pool *p)
{
	/* One that must wait does not hold up those that need another worker. */
	for (size_t i = 0; i < p->waiting.n;) {
		struct job *j = p->waiting.at[i];
		bool failed;
		struct worker *w = find_worker(p, j, &failed);

		if (w)
			start_job(p, w, j);
		else if (failed && all_idle(p))
			refuse_job(p, j, "not enough memory or processes for the request");
		else
			i++;
	}
}

/* ------------------------------------------------------------------ limits -- */

/* Counts for how long the worker has been held up by its client.  Called once a second. */
static void measure(struct job *j)
{
	int left = 0;

	(void)ioctl(j->from, FIONREAD, &left);
	j->slow = left && j->taken - j->taken_before < SLOW_BYTES ? j->slow + 1 : 0;
	j->taken_before = j->taken;
}

static struct worker *slowest(const struct pool *p)
{
	struct worker *found = NULL;

	vec_for_each (&p->workers, w) {
		const struct job *j = (*w)->job;

		if (j && j->slow >= SLOW_SECONDS && (!found || j->slow > found->job->slow))
			found = *w;
	}
	return found;
}

/* Ends workers that are held up, one for each request that has waited for some time. */
static void make_room(struct pool *p, uint64_t now)
{
	struct worker *w;

	vec_for_each (&p->workers, it) {
		if ((*it)->job && (*it)->job->begun && (*it)->job->request)
			measure((*it)->job);
	}
	vec_for_each (&p->waiting, j) {
		if (now - (*j)->since > WAIT_SECONDS * SECOND && (w = slowest(p)))
			worker_fail(w, HTTP_UNAVAILABLE, "");
	}
}

static struct worker *overdue(const struct pool *p, uint64_t now)
{
	vec_for_each (&p->workers, w) {
		const struct job *j = (*w)->job;
		uint64_t limit = j && !j->request ? CANCELLED_SECONDS : p->limits.seconds;

		if (j && (!j->begun || !j->request) && now - j->since > limit * SECOND)
			return *w;
	}
	return NULL;
}

static void end_overdue(struct pool *p, uint64_t now)
{
	struct worker *w;

	while ((w = overdue(p, now)))
		worker_fail(w, HTTP_TIMEOUT, "the answer took too long (memprof server --timeout)");
	while (p->waiting.n && now - p->waiting.at[0]->since > p->limits.seconds * SECOND)
		refuse_job(p, p->waiting.at[0], "the other requests took too long");
}

void pool_tick(struct pool *p)
{
	uint64_t now = mono_ns();
	struct worker *w;
	uint32_t idle;

	end_overdue(p, now);
	w = longest_idle(p, &idle);
	if (w && (idle > IDLE_MOST || now - w->idle_since > IDLE_SECONDS * SECOND))
		worker_end(w);
	make_room(p, now);
}

/* ------------------------------------------------------------------ interface -- */

int pool_open(struct loop *loop, const struct recordings *r, const struct pool_limits *limits,
	      const struct pool_events *events, struct pool **out)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->loop = p->ended.loop = loop;
	p->recordings = r;
	p->limits = *limits;
	p->events = *events;
	*out = p;
	return 0;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	while (p->workers.n) {
		struct worker *w = p->workers.at[0];

		if (w->job)
			job_free(w->job);
		worker_end(w);
	}
	vec_for_each (&p->waiting, j)
		job_free(*j);
	reaper_close(&p->ended);
	vec_free(&p->workers);
	vec_free(&p->waiting);
	free(p);
}

/* Makes the message to the worker.  Return: 0 or a negative errno. */
static int compose(struct job *j, const char *path, const char *query)
{
	size_t n = strlen(path) + 1, m = strlen(query) + 1;

	if (n > MESSAGE_MOST_PATH || m > QUERY_MOST_BYTES + 1)
		return -ENAMETOOLONG;
	j->text = malloc(n + m);
	if (!j->text)
		return -ENOMEM;
	memcpy(j->text, path, n);
	memcpy(j->text + n, query, m);
	j->size = n + m;
	return 0;
}

int pool_ask(struct pool *p, const struct pool_request *q, void *request, struct job **out, int *fd)
{
	struct job *j;
	int ends[2], ret;

	if (p->waiting.n >= p->limits.waiting)
		return -EAGAIN;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->to = -1;
	j->request = request;
	j->since = mono_ns();
	j->lasting = q->lasting;
	j->key = strdup(q->key);
	ret = j->key ? compose(j, q->path, q->query) : -ENOMEM;
	if (!ret && pipe2(ends, O_CLOEXEC))
		ret = -errno;
	if (!ret) {
		j->to = ends[1];
		j->from = ends[0];
		(void)fcntl(j->from, F_SETPIPE_SZ, PIPE_BYTES);
		(void)fcntl(j->from, F_SETFL, O_NONBLOCK);
		ret = vec_push(&p->waiting, j);
		if (ret)
			close(j->from);
	}
	if (ret) {
		job_free(j);
		return ret;
	}
	*fd = j->from;
	*out = j;
	return 0;
}

void pool_cancel(struct pool *p, struct job *j)
{
	struct worker *w = j->worker;

	if (w && j->begun) {
		/* Its next write fails: then it can be used again. */
		j->request = NULL;
		j->since = mono_ns();
		return;
	}
	stop_waiting(p, j);
	if (w) {
		w->job = NULL;
		worker_end(w);
	}
	job_free(j);
}

void pool_taken(struct job *j, uint64_t n)
{
	j->taken += n;
}
