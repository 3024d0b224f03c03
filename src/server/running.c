/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "control/requests.h"
#include "formats/file.h"
#include "lib/deadline.h"
#include "lib/vec.h"
#include "model/model.h"
#include "server/recordings.h"

#define LOOK_NS	 1000000000ull
#define NS_OF_MS 1000000ull

struct running {
	struct feed *feed;
	running_event *event;
	struct past past;
	uint64_t next_ns; /* when to ask for the next look */
	bool ended;
	VEC(int) subscribers;
	struct running_point points[RUNNING_POINTS];
	uint32_t n;
	uint32_t every,
	    skipped; /* one in so many looks becomes a point; those since the last one */
};

int running_find(const struct recording *r, pid_t *pid, struct mp_err *err)
{
	struct ss_control c;
	struct ss_journal j;

	if (r->pid && session_peek(r->pid, &c, &j) && recorder_lives(&j) &&
	    mpf_same_file(j.recording, r->path)) {
		*pid = r->pid;
		return 0;
	}
	return mp_fail(err, MP_EXIT_NO_SESSION, -ESRCH, "this recording is not in progress");
}

/* ------------------------------------------------------------------ subscribers -- */

/* Return: false if the client has left.  One whose pipe is full misses the event. */
static bool publish_to(int pipe, const char *text, size_t n)
{
	return write(pipe, text, n) >= 0 || errno == EAGAIN;
}

static void publish(struct running *l, const char *text, size_t n)
{
	for (size_t i = 0; i < l->subscribers.n;) {
		if (publish_to(l->subscribers.at[i], text, n)) {
			i++;
			continue;
		}
		close(l->subscribers.at[i]);
		l->subscribers.at[i] = l->subscribers.at[--l->subscribers.n];
	}
}

static void publish_look(struct running *l)
{
	char *text;
	size_t n;

	if (!l->subscribers.n || l->event(l, &text, &n))
		return;
	publish(l, text, n);
	free(text);
}

void running_subscribe(struct running *l, int pipe)
{
	char *text;
	size_t n;
	bool stays = !fcntl(pipe, F_SETFL, O_NONBLOCK) && !l->event(l, &text, &n);

	if (stays) {
		stays = publish_to(pipe, text, n) && !l->ended;
		free(text);
	}
	if (!stays || vec_push(&l->subscribers, pipe))
		close(pipe);
}

/* ------------------------------------------------------------------ looks -- */

static struct running_point present(const struct model *m)
{
	const struct group *t = &m->sums.total;
	size_t n = m->facts.samples.n;

	return (struct running_point){.time_ns = m->facts.end_ns,
				      .live_bytes = t->live_bytes,
				      .live_blocks = t->live_blocks,
				      .allocations = t->allocations,
				      .allocated_bytes = t->allocated_bytes,
				      .resident_bytes = n ? m->facts.samples.at[n - 1].rss : 0};
}

/* Keeps every second point when there is no room: a long recording gets coarser, not longer. */
static void add_point(struct running *l)
{
	if (++l->skipped < l->every)
		return;
	l->skipped = 0;
	if (l->n == RUNNING_POINTS) {
		for (uint32_t i = 0; i < RUNNING_POINTS / 2; i++)
			l->points[i] = l->points[2 * i];
		l->n = RUNNING_POINTS / 2;
		l->every *= 2;
	}
	l->points[l->n++] = present(feed_model(l->feed));
}

/* Return: 1 if there was a look, else 0, or a negative errno with @err. */
static int take_look(struct running *l, struct mp_err *err)
{
	int ret = feed_take(l->feed, err);

	if (ret <= 0)
		return ret;
	/* Without memory for it only the rates are older. */
	(void)past_add(&l->past, feed_model(l->feed));
	add_point(l);
	return 1;
}

static void end_stream(struct running *l)
{
	static const char text[] = "event: end\ndata: {}\n\n";

	l->ended = true;
	publish(l, text, sizeof(text) - 1);
	vec_for_each (&l->subscribers, pipe)
		close(*pipe);
	l->subscribers.n = 0;
}

int running_serve(struct running *l)
{
	struct mp_err err = {0};
	uint64_t now = mono_ns();
	int ret = l->ended ? 0 : take_look(l, &err);

	if (ret < 0)
		end_stream(l);
	else if (ret > 0)
		publish_look(l);
	if (l->ended)
		return -1;
	if (now >= l->next_ns) {
		l->next_ns = now + LOOK_NS;
		feed_ask(l->feed);
	}
	return (int)((l->next_ns - now) / NS_OF_MS) + 1;
}

/* ------------------------------------------------------------------ life -- */

int running_open(const struct recording *r, running_event *event, struct running **out,
		 struct mp_err *err)
{
	struct running *l;
	pid_t pid = 0;
	int ret = running_find(r, &pid, err);

	if (ret)
		return ret;
	l = calloc(1, sizeof(*l));
	if (!l)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	l->event = event;
	l->every = 1;
	ret = feed_open(pid, &l->feed, err);
	if (!ret)
		ret = take_look(l, err);
	if (ret < 0) {
		running_close(l);
		return ret;
	}
	*out = l;
	return 0;
}

void running_close(struct running *l)
{
	if (!l)
		return;
	vec_for_each (&l->subscribers, pipe)
		close(*pipe);
	vec_free(&l->subscribers);
	past_free(&l->past);
	feed_close(l->feed);
	free(l);
}

int running_fd(const struct running *l)
{
	return l->ended ? -1 : feed_fd(l->feed);
}

bool running_ended(const struct running *l)
{
	return l->ended;
}

struct model *running_model(struct running *l)
{
	return feed_model(l->feed);
}

const struct feed_state *running_state(const struct running *l)
{
	return feed_state(l->feed);
}

const struct past *running_past(const struct running *l)
{
	return &l->past;
}

const struct running_point *running_points(const struct running *l, uint32_t *n)
{
	*n = l->n;
	return l->points;
}
