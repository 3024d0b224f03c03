/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/push.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "control/requests.h"
#include "formats/file.h"
#include "lib/deadline.h"
#include "model/group.h"
#include "model/model.h"
#include "model/sums/quick.h"
#include "push/body.h"
#include "push/file_hash.h"
#include "push/identity.h"
#include "push/metrics.h"
#include "push/stores.h"
#include "top/feed.h"

#define END_MS	     30000 /* how long the recorder may need to end a recording */
#define LAST_LOOK_MS 5000  /* how long the recorder may need for the last window */

/* The sums of a stack at the last look. */
struct before {
	uint64_t allocations, bytes;
};

struct push {
	const struct push_options *o;
	pid_t pid;
	struct push_recording recording;
	int stop, wanted; /* eventfds: push_end(), push_look() */
	struct feed *feed;
	struct identity id;
	struct file_hashes files;
	VEC(struct before) before; /* by stack */
	struct group *window;	   /* by stack */
	size_t stacks;		   /* of window */
	uint64_t end_ns;	   /* of the last window, since the recording's start */
	uint64_t lost;		   /* events, until then */
	bool looked;		   /* the first look is over */
	bool due;		   /* the next look ends a window */
	pthread_mutex_t lock;	   /* protects metrics */
	struct metrics metrics;
};

static int no_memory(struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
}

/* -------------------------------------------------------------------- window -- */

/* Estimates can become less. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Makes p->window: what was allocated since the last look, and what is live. */
static int take_window(struct push *p, const struct model *m)
{
	const struct before none = {0};
	struct group *more;

	if (m->stacks.n > p->stacks) {
		more = realloc(p->window, m->stacks.n * sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->window = more;
		p->stacks = m->stacks.n;
	}
	for (uint32_t i = 0; i < m->stacks.n; i++) {
		const struct group *g = &m->sums.group[i];
		struct before *b;

		if (i == p->before.n && vec_push(&p->before, none))
			return -ENOMEM;
		b = &p->before.at[i];
		p->window[i] = (struct group){
		    .allocations = since(g->allocations, b->allocations),
		    .allocated_bytes = since(g->allocated_bytes, b->bytes),
		    .live_blocks = g->live_blocks,
		    .live_bytes = g->live_bytes,
		};
		*b = (struct before){g->allocations, g->allocated_bytes};
	}
	return 0;
}

static int deliver(struct push *p, size_t i, struct model *m, const struct profile_window *w)
{
	struct body b;
	int ret = body_make(stores_config(p->o->stores)->destination[i].kind, m, w, &p->id,
			    &p->files, &b);

	if (ret)
		return ret;
	stores_put(p->o->stores, i, p->metrics.service, p->pid, w->start_unix_ns, &b);
	body_free(&b);
	return 0;
}

/* Pushes the window that ends with the sums of @m, which are as of @behind_ns before its end. */
static int push_window(struct push *p, struct model *m, uint64_t behind_ns, struct mp_err *err)
{
	const uint64_t end = m->facts.end_ns - behind_ns, from = p->end_ns;
	const bool first = !p->looked;
	struct profile_window w = {.start_unix_ns = m->info.start_unix_ns + from,
				   .duration_ns = since(end, from),
				   .allocated = true,
				   .live = true,
				   .symbols = !p->o->no_symbols};
	int ret;

	w.all_lost_events = mp_losses_events(&m->facts.losses);
	w.lost_events = since(w.all_lost_events, p->lost);
	w.lost_frees = mp_losses_frees(&m->facts.losses);
	w.thinned = m->facts.losses.thinned;
	w.live_error = (uint64_t)group_error(m->sums.total.variance_live);
	p->due = false;
	p->looked = true;
	/* The first look ends no window; if the recording has just begun, the first window has its sums. */
	if (first && p->recording.over >= 0)
		return 0;
	ret = take_window(p, m);
	p->end_ns = end;
	p->lost = w.all_lost_events;
	p->files.model = m;
	w.group = p->window;
	for (size_t i = 0; !ret && !first && i < stores_config(p->o->stores)->n; i++)
		ret = deliver(p, i, m, &w);
	pthread_mutex_lock(&p->lock);
	p->metrics.windows += !ret && !first;
	pthread_mutex_unlock(&p->lock);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot push a profile: %s", strerror(-ret))
		   : 0;
}

/* ---------------------------------------------------------------------- loop -- */

static int open_feed(struct push *p, struct mp_err *err)
{
	int ret = feed_open(p->pid, &p->feed, err);

	if (ret)
		return ret;
	/* Names of stores are complete. */
	feed_model(p->feed)->shown.full = true;
	return 0;
}

/* Takes the look that is ready, and pushes its window if that is due.  A recorder that is too busy to answer is asked
 * again at the next tick; the window is longer then. */
static int take_look(struct push *p, struct mp_err *err)
{
	struct ss_control c;
	struct ss_journal j;
	int ret = feed_take(p->feed, err);

	if (ret > 0) {
		pthread_mutex_lock(&p->lock);
		metrics_look(&p->metrics, feed_model(p->feed), feed_state(p->feed));
		pthread_mutex_unlock(&p->lock);
		return p->due ? push_window(p, feed_model(p->feed), feed_state(p->feed)->behind_ns,
					    err)
			      : 0;
	}
	if (!ret)
		return 0;
	if (!session_peek(p->pid, &c, &j) || j.state != SS_LIVE || !recorder_lives(&j))
		return -ESHUTDOWN;
	feed_close(p->feed);
	p->feed = NULL;
	return open_feed(p, err);
}

/* Asks for a look, waits for it, and pushes its window. */
static int window_of_now(struct push *p, struct mp_err *err)
{
	const struct deadline patience = deadline_in_ms(LAST_LOOK_MS);
	int ret = 0;

	p->due = true;
	while (!ret && p->due && !deadline_passed(&patience)) {
		struct pollfd f = {.fd = feed_fd(p->feed), .events = POLLIN};

		feed_ask(p->feed);
		if (poll(&f, 1, 100) > 0)
			ret = take_look(p, err);
	}
	return ret;
}

/* The recording has ended, perhaps since its process crashed: pushes the window until then.  Return: 0 or a negative errno
 * with @err. */
static int window_of_end(struct push *p, struct mp_err *err)
{
	struct pollfd over = {.fd = p->recording.over, .events = POLLIN};
	struct model m = {0};
	uint32_t from = 0;
	int ret;

	if (p->recording.over < 0)
		return 0;
	ret = poll(&over, 1, END_MS) > 0
		  ? quick_follow(&m, p->recording.last_view, "the last view", &from, err)
		  : -ETIME;
	m.shown.full = true;
	p->looked = true;
	if (ret) {
		pthread_mutex_lock(&p->lock);
		p->metrics.windows_lost++;
		pthread_mutex_unlock(&p->lock);
	} else {
		ret = push_window(p, &m, 0, err);
	}
	model_free(&m);
	return ret == -ETIME ? 0 : ret;
}

/* Return: -ESHUTDOWN, or another negative errno, with @err. */
static int recording_ended(struct push *p, struct mp_err *err)
{
	const int ret = window_of_end(p, err);

	return ret ? ret : mp_fail(err, MP_EXIT_FAILURE, -ESHUTDOWN, "the recording has ended");
}

/* The last one.  If the recording can end with it, it has every event: a thread's last frees can come a moment later. */
static int last_window(struct push *p, struct mp_err *err)
{
	struct ss_journal j;

	return p->recording.over >= 0 && !request_end(p->pid, &j, err) ? window_of_end(p, err)
								       : window_of_now(p, err);
}

static int loop(struct push *p, int timer, struct mp_err *err)
{
	int ret = 0;

	while (!ret) {
		struct pollfd f[] = {{.fd = p->stop, .events = POLLIN},
				     {.fd = p->recording.over, .events = POLLIN},
				     {.fd = timer, .events = POLLIN},
				     {.fd = p->wanted, .events = POLLIN},
				     {.fd = feed_fd(p->feed), .events = POLLIN}};
		uint64_t n;

		if (poll(f, sizeof(f) / sizeof(*f), -1) < 0 && errno != EINTR)
			return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot wait: %s",
				       strerror(errno));
		if (f[1].revents)
			return -ESHUTDOWN;
		if (f[0].revents)
			return last_window(p, err);
		p->due |= f[2].revents && read(timer, &n, sizeof(n)) > 0;
		if (f[2].revents || (f[3].revents && read(p->wanted, &n, sizeof(n)) > 0))
			feed_ask(p->feed);
		if (f[4].revents)
			ret = take_look(p, err);
	}
	return ret;
}

static int start_timer(uint64_t every_ms, int *timer, struct mp_err *err)
{
	const struct timespec t = {(time_t)(every_ms / 1000), (long)(every_ms % 1000 * 1000000)};
	const struct itimerspec it = {t, t};

	*timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (*timer < 0 || timerfd_settime(*timer, 0, &it, NULL))
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make a timer: %s",
			       strerror(errno));
	return 0;
}

int push_open(const struct push_options *o, pid_t pid, struct push **out, struct mp_err *err)
{
	struct push *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return no_memory(err);
	p->o = o;
	p->pid = pid;
	p->due = true;
	pthread_mutex_init(&p->lock, NULL);
	p->stop = eventfd(0, EFD_CLOEXEC);
	p->wanted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	file_hashes_begin(&p->files, pid);
	ret = identity_take(&p->id, pid, o->label, o->labels) ? no_memory(err) : 0;
	if (!ret && (p->stop < 0 || p->wanted < 0))
		ret = mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot make an event: %s",
			      strerror(errno));
	if (ret) {
		push_close(p);
		return ret;
	}
	p->metrics.pid = pid;
	p->metrics.service = identity_text(&p->id, "service.name");
	if (!p->metrics.service)
		p->metrics.service = "process";
	*out = p;
	return 0;
}

int push_run(struct push *p, const struct push_recording *recording, struct mp_err *err)
{
	int timer = -1, ret;

	p->recording = *recording;
	ret = open_feed(p, err);
	ret = ret ? ret : take_look(p, err);
	ret = ret ? ret : start_timer(p->o->every_ms, &timer, err);
	ret = ret ? ret : loop(p, timer, err);
	if (ret == -ESHUTDOWN)
		ret = recording_ended(p, err);
	if (timer >= 0)
		close(timer);
	return ret;
}

void push_close(struct push *p)
{
	if (!p)
		return;
	feed_close(p->feed);
	identity_free(&p->id);
	file_hashes_free(&p->files);
	vec_free(&p->before);
	free(p->window);
	if (p->stop >= 0)
		close(p->stop);
	if (p->wanted >= 0)
		close(p->wanted);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void push_end(struct push *p)
{
	eventfd_write(p->stop, 1);
}

void push_look(struct push *p)
{
	eventfd_write(p->wanted, 1);
}

struct metrics push_metrics(struct push *p)
{
	struct metrics m;

	pthread_mutex_lock(&p->lock);
	m = p->metrics;
	pthread_mutex_unlock(&p->lock);
	return m;
}
