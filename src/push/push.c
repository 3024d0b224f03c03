/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/push.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "control/requests.h"
#include "formats/file.h"
#include "lib/deadline.h"
#include "model/group.h"
#include "model/model.h"
#include "model/quick.h"
#include "push/body.h"
#include "push/directory.h"
#include "push/file_hash.h"
#include "push/identity.h"
#include "push/metrics.h"
#include "push/scrape.h"
#include "push/outbox.h"
#include "top/feed.h"

#define TICK_MS		   1000
#define FRESH_NS	   1000000000u
#define SCRAPE_PATIENCE_NS 5000000000u
#define END_MS		   30000 /* how long the recorder may need to end a recording */
#define LAST_LOOK_MS	   5000	 /* how long the recorder may need for the last window */
#define LAST_SEND_MS	   5000	 /* how long the servers may */

/* The sums of a stack at the last look. */
struct before {
	uint64_t allocations, bytes;
};

struct push {
	const struct push_options *o;
	struct push_recording recording;
	struct feed *feed;
	struct identity id;
	struct file_hashes files;
	struct outbox *outbox[PUSH_DESTINATIONS];	 /* NULL: a directory */
	struct outbox_counts written[PUSH_DESTINATIONS]; /* of directories */
	bool failing[PUSH_DESTINATIONS]; /* of directories: the last file could not be written */
	VEC(struct before) before;	 /* by stack */
	struct group *window;		 /* by stack */
	size_t stacks;			 /* of window */
	uint64_t end_ns;		 /* of the last window, since the recording's start */
	uint64_t lost;			 /* events, until then */
	bool looked;			 /* the first look is over */
	bool due;			 /* the next look ends a window */
	uint64_t waited_ns;		 /* since when a client waits for metrics; 0: none does */
	struct metrics metrics;
	struct push_result r;
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

static void write_to_directory(struct push *p, size_t i, const struct profile_window *w,
			       const struct body *b)
{
	const struct destination *d = &p->o->destination[i];
	int ret = directory_put(d->url, p->metrics.service, p->o->pid, w->start_unix_ns, b->bytes,
				b->n, p->o->limit);

	p->written[i].sent += !ret;
	p->written[i].dropped += ret != 0;
	if (p->failing[i] != (ret != 0))
		p->o->report(p->o->ctx, d, ret ? strerror(-ret) : NULL);
	p->failing[i] = ret != 0;
}

static int deliver(struct push *p, size_t i, struct model *m, const struct profile_window *w)
{
	struct body b;
	int ret = body_make(p->o->destination[i].kind, m, w, &p->id, &p->files, &b);

	if (ret)
		return ret;
	if (p->outbox[i])
		outbox_put(p->outbox[i], b.query, b.bytes, b.n);
	else
		write_to_directory(p, i, w, &b);
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
	for (size_t i = 0; !ret && !first && i < p->o->n; i++)
		ret = deliver(p, i, m, &w);
	p->r.windows += !ret && !first;
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "cannot push a profile: %s", strerror(-ret))
		   : 0;
}

/* ------------------------------------------------------------------ metrics -- */

static struct outbox_counts counts_of(const struct push *p, size_t i)
{
	return p->outbox[i] ? outbox_counts(p->outbox[i]) : p->written[i];
}

/* Answers the clients that wait, with what is known now. */
static void answer_scrape(struct push *p)
{
	struct metrics *m = &p->metrics;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int ret = out ? 0 : -ENOMEM;

	m->windows = p->r.windows;
	m->stores = p->o->n;
	for (size_t i = 0; i < m->stores; i++)
		m->store[i] = (struct metrics_store){p->o->destination[i].url, counts_of(p, i)};
	if (out) {
		ret = metrics_write(m, out);
		if (fclose(out))
			ret = -ENOMEM;
	}
	if (ret) {
		free(text);
		text = NULL;
	}
	scrape_answer(p->o->scrape, text, n);
	p->waited_ns = 0;
}

/* Values are at most a second old, unless the recorder does not answer: then their age tells it. */
static void serve_metrics(struct push *p)
{
	const uint64_t now = mono_ns();

	if (!p->o->scrape || !scrape_run(p->o->scrape))
		return;
	if (!p->waited_ns)
		p->waited_ns = now;
	if (now - p->metrics.looked_ns < FRESH_NS || now - p->waited_ns > SCRAPE_PATIENCE_NS)
		answer_scrape(p);
	else
		feed_ask(p->feed);
}

/* ---------------------------------------------------------------------- loop -- */

static int open_feed(struct push *p, struct mp_err *err)
{
	int ret = feed_open(p->o->pid, &p->feed, err);

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
		metrics_look(&p->metrics, feed_model(p->feed), feed_state(p->feed));
		return p->due ? push_window(p, feed_model(p->feed), feed_state(p->feed)->behind_ns,
					    err)
			      : 0;
	}
	if (!ret)
		return 0;
	if (!session_peek(p->o->pid, &c, &j) || j.state != SS_LIVE || !recorder_lives(&j))
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
	if (ret)
		p->r.lost += p->o->n;
	else
		ret = push_window(p, &m, 0, err);
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

	return p->recording.over >= 0 && !request_end(p->o->pid, &j, err) ? window_of_end(p, err)
									  : window_of_now(p, err);
}

/* Return: ms until @end, at most TICK_MS. */
static int wait_until(uint64_t end)
{
	const uint64_t now = mono_ns();

	if (end == UINT64_MAX)
		return TICK_MS;
	return now >= end			  ? 0
	       : (end - now) / 1000000u < TICK_MS ? (int)((end - now) / 1000000u) + 1
						  : TICK_MS;
}

static int loop(struct push *p, int timer, struct mp_err *err)
{
	const uint64_t end = p->o->for_ms ? mono_ns() + p->o->for_ms * 1000000u : UINT64_MAX;
	int ret = 0;

	while (!ret) {
		struct pollfd f[] = {
		    {.fd = p->o->stop, .events = POLLIN},
		    {.fd = p->recording.over, .events = POLLIN},
		    {.fd = timer, .events = POLLIN},
		    {.fd = feed_fd(p->feed), .events = POLLIN},
		    {.fd = p->o->scrape ? scrape_fd(p->o->scrape) : -1, .events = POLLIN}};
		uint64_t ticks;

		if (poll(f, sizeof(f) / sizeof(*f), wait_until(end)) < 0 && errno != EINTR)
			return mp_fail(err, MP_EXIT_FAILURE, -errno, "cannot wait: %s",
				       strerror(errno));
		if (f[1].revents)
			return -ESHUTDOWN;
		if (f[0].revents || mono_ns() >= end)
			return last_window(p, err);
		if (f[2].revents && read(timer, &ticks, sizeof(ticks)) > 0) {
			p->due = true;
			feed_ask(p->feed);
		}
		if (f[3].revents)
			ret = take_look(p, err);
		serve_metrics(p);
	}
	return ret;
}

static int open_outboxes(struct push *p, struct mp_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < p->o->n; i++) {
		const struct outbox_config c = {.destination = &p->o->destination[i],
						.spool = p->o->spool,
						.limit = p->o->limit,
						.report = p->o->report,
						.ctx = p->o->ctx};

		if (p->o->destination[i].kind != DESTINATION_DIRECTORY)
			ret = outbox_open(&c, &p->outbox[i], err);
	}
	return ret;
}

static int start_outboxes(struct push *p, struct mp_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < p->o->n; i++)
		ret = p->outbox[i] ? outbox_start(p->outbox[i], err) : 0;
	return ret;
}

static void stop_outboxes(struct push *p)
{
	for (size_t i = 0; i < p->o->n; i++) {
		struct outbox_counts c =
		    p->outbox[i] ? outbox_stop(p->outbox[i], LAST_SEND_MS) : p->written[i];

		p->outbox[i] = NULL;
		p->r.rejected += c.rejected;
		p->r.lost += c.dropped;
		p->r.waiting += c.waiting;
	}
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

int push_open(const struct push_options *o, struct push **out, struct mp_err *err)
{
	struct push *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return no_memory(err);
	p->o = o;
	p->due = true;
	file_hashes_begin(&p->files, o->pid);
	ret = identity_take(&p->id, o->pid, o->label, o->labels) ? no_memory(err)
								 : open_outboxes(p, err);
	if (ret) {
		push_close(p);
		return ret;
	}
	p->metrics.pid = o->pid;
	p->metrics.service = identity_text(&p->id, "service.name");
	if (!p->metrics.service)
		p->metrics.service = "process";
	*out = p;
	return 0;
}

int push_run(struct push *p, const struct push_recording *recording, struct push_result *r,
	     struct mp_err *err)
{
	int timer = -1, ret;

	p->recording = *recording;
	ret = start_outboxes(p, err);
	ret = ret ? ret : open_feed(p, err);
	ret = ret ? ret : take_look(p, err);
	ret = ret ? ret : start_timer(p->o->every_ms, &timer, err);
	ret = ret ? ret : loop(p, timer, err);
	if (ret == -ESHUTDOWN)
		ret = recording_ended(p, err);
	if (timer >= 0)
		close(timer);
	stop_outboxes(p);
	*r = p->r;
	push_close(p);
	return ret;
}

void push_close(struct push *p)
{
	if (!p)
		return;
	stop_outboxes(p);
	feed_close(p->feed);
	identity_free(&p->id);
	file_hashes_free(&p->files);
	vec_free(&p->before);
	free(p->window);
	free(p);
}
