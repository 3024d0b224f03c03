/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "control/requests.h"
#include "lib/thread.h"
#include "model/model.h"
#include "model/sums/quick.h"

/* What the thread got from the recorder. */
struct answer {
	int ret; /* of request_view(), with err */
	struct mp_err err;
	int fd;
	struct recorder_view view;
	char recording[sizeof(((struct ss_journal *)0)->recording)];
};

struct feed {
	pid_t pid;
	pthread_t thread;
	struct ss_journal journal; /* the thread's */
	int ready;		   /* an eventfd that is readable while there is an answer */

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	bool wanted, answered, quit; /* a request for the thread; its answer; its end */
	uint32_t from;		     /* stacks that are not known yet */
	struct answer answer;

	/* Only of the caller's thread */
	struct model model;
	struct feed_state state;
};

static void *ask_recorder(void *arg)
{
	struct feed *f = arg;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct answer a = {.fd = -1};
		uint32_t from = f->from;
		uint64_t one = 1;

		if (f->quit)
			break;
		if (!f->wanted) {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		pthread_mutex_unlock(&f->lock);
		a.ret = request_view(f->pid, from, &f->journal, &a.fd, &a.view, &a.err);
		snprintf(a.recording, sizeof(a.recording), "%s", f->journal.recording);
		pthread_mutex_lock(&f->lock);
		f->answer = a;
		f->wanted = false;
		f->answered = true;
		if (write(f->ready, &one, sizeof(one)) < 0)
			f->answer.ret = f->answer.ret ? f->answer.ret : -errno;
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void feed_ask(struct feed *f)
{
	pthread_mutex_lock(&f->lock);
	if (!f->wanted && !f->answered) {
		f->wanted = true;
		pthread_cond_signal(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
}

static bool take_answer(struct feed *f, struct answer *a)
{
	uint64_t n;
	bool there;

	pthread_mutex_lock(&f->lock);
	there = f->answered;
	if (there) {
		*a = f->answer;
		f->answered = false;
		if (read(f->ready, &n, sizeof(n)) < 0)
			there = errno == EAGAIN;
	}
	pthread_mutex_unlock(&f->lock);
	return there;
}

static void note_state(struct feed *f, const struct recorder_view *v)
{
	f->state.paused = v->paused;
	f->state.can_thin = v->thins;
	f->state.least = v->least;
	f->state.behind_ns = v->behind_ns;
}

int feed_take(struct feed *f, struct mp_err *err)
{
	struct answer a;
	uint32_t from = f->from;
	int ret;

	if (!take_answer(f, &a))
		return 0;
	if (a.ret) {
		*err = a.err;
		return a.ret;
	}
	ret = quick_follow(&f->model, a.fd, a.recording, &from, err);
	close(a.fd);
	if (ret)
		return ret;
	note_state(f, &a.view);
	pthread_mutex_lock(&f->lock);
	f->from = from;
	pthread_mutex_unlock(&f->lock);
	return 1;
}

int feed_open(pid_t pid, struct feed **out, struct mp_err *err)
{
	struct feed *f = calloc(1, sizeof(*f));
	struct pollfd p;
	int ret;

	if (!f)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	f->pid = pid;
	f->wanted = true;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = f->ready < 0 ? -errno : thread_start(&f->thread, ask_recorder, f);
	if (ret) {
		if (f->ready >= 0)
			close(f->ready);
		free(f);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot look at the recording: %s",
			       strerror(-ret));
	}
	p = (struct pollfd){.fd = f->ready, .events = POLLIN};
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		continue;
	*out = f;
	return 0;
}

void feed_close(struct feed *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	if (f->answered && f->answer.fd >= 0)
		close(f->answer.fd);
	close(f->ready);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	model_free(&f->model);
	free(f);
}

int feed_fd(const struct feed *f)
{
	return f->ready;
}

struct model *feed_model(struct feed *f)
{
	return &f->model;
}

const struct feed_state *feed_state(const struct feed *f)
{
	return &f->state;
}

static int request(const struct feed *f, const char *line, struct mp_err *err)
{
	struct recorder_boundary b;
	struct ss_journal j;

	return request_send(f->pid, line, &j, &b, err);
}

int feed_mark(struct feed *f, const char *name, struct mp_err *err)
{
	char line[512];

	snprintf(line, sizeof(line), "mark %.400s", name);
	return request(f, line, err);
}

int feed_pause(struct feed *f, bool pause, struct mp_err *err)
{
	int ret = request(f, pause ? "pause" : "resume", err);

	if (!ret)
		f->state.paused = pause;
	return ret;
}

int feed_thin(struct feed *f, uint32_t least, struct mp_err *err)
{
	int ret = request_thin(f->pid, least, err);

	if (!ret)
		f->state.least = least;
	return ret;
}
