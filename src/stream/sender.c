/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "lib/check.h"
#include "lib/privileges.h"
#include "lib/thread.h"
#include "stream/beacon.h"
#include "stream/endpoint.h"
#include "stream/peer.h"
#include "stream/window.h"

#define TICK_MS	     200
#define OPEN_MS	     10000 /* for the first connection */
#define HANDSHAKE_MS 5000u /* from the beginning of a connection until data can be sent */
#define LEAST_MS     200u  /* until the next attempt, at first */
#define MOST_MS	     5000u
#define ANNOUNCE_MS  1000u
#define CANCEL_MS    2000	/* to send that the recording is cancelled */
#define READ_MOST    (1u << 20) /* bytes from the pipe in one step, so that others are not late */

enum stage {
	AWAY,	    /* no connection: the next attempt is at retry_ns */
	CONNECTING, /* the socket is connecting */
	SHAKING,    /* handshake */
	OPENING,    /* OPEN was sent */
	STREAMING,
};

struct sender {
	struct sender_config config;
	struct token token;
	struct addrinfo *addresses, *next; /* of the receiver */
	int listener, beacon;		   /* to announce; else -1 */
	uint16_t port;
	int pipe, wake; /* reading end; an eventfd */
	pthread_t thread;

	/* Only the thread uses these. */
	enum stage stage;
	struct peer peer;
	struct window window;
	uint64_t sent;			/* offset of the next byte to send */
	uint64_t begun_ns;		/* when this connection began */
	uint64_t retry_ns, announce_ns; /* when to try next */
	uint64_t progress_ns; /* when the receiver last took something, or had everything */
	uint32_t failures;    /* since data could be sent */
	bool written, ended;  /* the pipe is at its end; END was sent */
	bool done;
	int error; /* there is no sense in another attempt */

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	struct sender_state state;
	uint64_t ending_ns; /* when sender_ending() was called; 0: not yet */
	bool cancelled;
};

static uint64_t ms(uint64_t n)
{
	return n * 1000000u;
}

static void show(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	s->state.connected = s->stage == STREAMING;
	s->state.taken = s->window.end;
	s->state.delivered = s->window.begin;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Half of the time is random, so that the senders of a receiver that restarts do not come at once. */
static uint64_t pause_ms(const struct sender *s)
{
	uint32_t shift = s->failures < 5 ? s->failures : 5;
	uint64_t most = (uint64_t)LEAST_MS << shift;

	most = most < MOST_MS ? most : MOST_MS;
	return most / 2 + mono_ns() / 1000 % (most / 2);
}

static void drop_connection(struct sender *s, const char *why)
{
	pthread_mutex_lock(&s->lock);
	s->state.drops += s->stage == STREAMING;
	snprintf(s->state.why, sizeof(s->state.why), "%s", why ? why : "?");
	pthread_mutex_unlock(&s->lock);
	peer_end(&s->peer);
	s->retry_ns = mono_ns() + ms(pause_ms(s));
	s->failures++;
	s->stage = AWAY;
	s->ended = false;
	show(s);
}

static void drop_for(struct sender *s, int error)
{
	drop_connection(s, strerror(-error));
}

static void shake(struct sender *s, int fd)
{
	s->stage = SHAKING;
	if (peer_begin(&s->peer, fd, WIRE_SENDER, &s->token))
		drop_connection(s, s->peer.why);
}

/* Begins to connect to the next address. */
static void dial(struct sender *s)
{
	int fd;

	s->next = s->next && s->next->ai_next ? s->next->ai_next : s->addresses;
	s->begun_ns = mono_ns();
	fd = endpoint_connect(s->next->ai_addr, s->next->ai_addrlen);
	if (fd < 0) {
		drop_for(s, fd);
		return;
	}
	s->peer.fd = fd;
	s->stage = CONNECTING;
}

static void announce(struct sender *s)
{
	struct beacon b = {.pid = s->config.pid, .port = s->port};

	if (mono_ns() < s->announce_ns)
		return;
	s->announce_ns = mono_ns() + ms(ANNOUNCE_MS);
	memcpy(b.id, s->config.id, sizeof(b.id));
	snprintf(b.name, sizeof(b.name), "%s", s->config.program);
	beacon_send(s->beacon, &b);
}

static void accept_receiver(struct sender *s)
{
	union endpoint from;
	int fd = endpoint_accept(s->listener, &from);

	if (fd < 0)
		return;
	if (!endpoint_is_local(&from.any)) {
		close(fd);
		return;
	}
	s->begun_ns = mono_ns();
	shake(s, fd);
}

static void connected(struct sender *s)
{
	int ret = endpoint_connected(s->peer.fd), fd = s->peer.fd;

	if (ret) {
		drop_for(s, ret);
		return;
	}
	shake(s, fd);
}

static int put_open(struct sender *s)
{
	uint8_t payload[WIRE_ID + WIRE_NAME];
	size_t n = strlen(s->config.name);

	memcpy(payload, s->config.id, WIRE_ID);
	memcpy(payload + WIRE_ID, s->config.name, n);
	s->stage = OPENING;
	return peer_put(&s->peer, WIRE_OPEN, s->window.begin, payload, WIRE_ID + n);
}

/* Another attempt would have the same result. */
static int hopeless(struct sender *s, int error, const char *why)
{
	s->error = error;
	drop_connection(s, why);
	return error;
}

/* The answer to OPEN.  Return: 0, or a negative errno: the connection was dropped. */
static int begin_at(struct sender *s, uint64_t offset)
{
	if (offset < s->window.begin || offset > s->window.end)
		return hopeless(s, -ESTALE,
				"the receiver does not have what it had of the recording");
	window_forget(&s->window, offset);
	s->sent = offset;
	s->stage = STREAMING;
	s->failures = 0;
	s->progress_ns = mono_ns();
	return 0;
}

static int acknowledged(struct sender *s, uint64_t offset)
{
	if (offset < s->window.begin || offset > s->sent) {
		drop_connection(s, "it confirmed what was not sent");
		return -EPROTO;
	}
	if (offset > s->window.begin)
		s->progress_ns = mono_ns();
	window_forget(&s->window, offset);
	return 0;
}

static void refused(struct sender *s, const struct wire_frame *f)
{
	char why[160];

	snprintf(why, sizeof(why), "%.*s", (int)(f->length < 150 ? f->length : 150),
		 (const char *)f->payload);
	drop_connection(s, why);
}

/* Return: 0, or a negative errno: the connection was dropped. */
static int take_frame(struct sender *s, const struct wire_frame *f)
{
	if (f->type == WIRE_FAIL) {
		refused(s, f);
		return -ECONNREFUSED;
	}
	if (f->length) {
		drop_connection(s, "it sent a frame that is not valid");
		return -EPROTO;
	}
	if (s->stage == OPENING && f->type == WIRE_ACK)
		return begin_at(s, f->offset);
	if (s->stage == STREAMING && f->type == WIRE_ACK)
		return acknowledged(s, f->offset);
	if (s->stage == STREAMING && f->type == WIRE_DONE && s->ended &&
	    f->offset == s->window.end) {
		window_forget(&s->window, f->offset);
		s->done = true;
		return 0;
	}
	drop_connection(s, "it sent a frame that is not valid");
	return -EPROTO;
}

static void receive(struct sender *s)
{
	struct wire_frame f;
	int ret = peer_receive(&s->peer);

	while (!ret && (ret = peer_next(&s->peer, &f)) > 0) {
		if (take_frame(s, &f))
			return;
		ret = 0;
	}
	if (ret)
		drop_connection(s, s->peer.why);
	else if (s->stage == SHAKING && s->peer.stage == PEER_READY && put_open(s))
		drop_connection(s, s->peer.why);
}

/* Return: 0, -EAGAIN: the connection's buffer is full, or another negative errno. */
static int put_data(struct sender *s)
{
	size_t n;
	const uint8_t *at = window_at(&s->window, s->sent, &n);
	int ret;

	if (n > WIRE_PAYLOAD)
		n = WIRE_PAYLOAD;
	ret = peer_put(&s->peer, WIRE_DATA, s->sent, at, n);
	if (!ret)
		s->sent += n;
	return ret;
}

static bool is_cancelled(struct sender *s)
{
	bool cancelled;

	pthread_mutex_lock(&s->lock);
	cancelled = s->cancelled;
	pthread_mutex_unlock(&s->lock);
	return cancelled;
}

static void fill_buffer(struct sender *s)
{
	int ret = 0;

	while (!ret && s->sent < s->window.end)
		ret = put_data(s);
	/* A recording that is cancelled is cancelled before its pipe is closed. */
	if (!ret && s->written && !s->ended && !is_cancelled(s)) {
		ret = peer_put(&s->peer, WIRE_END, s->sent, NULL, 0);
		s->ended = !ret;
	}
	if (!ret && mono_ns() - s->peer.spoke_ns > ms(PEER_PING_MS))
		ret = peer_put(&s->peer, WIRE_PING, 0, NULL, 0);
	if (ret && ret != -EAGAIN)
		drop_connection(s, s->peer.why);
}

static void read_pipe(struct sender *s)
{
	for (size_t all = 0; all < READ_MOST && !s->written;) {
		size_t room;
		uint8_t *at = window_room(&s->window, &room);
		ssize_t n = room ? read(s->pipe, at, room) : -1;

		if (!room || (n < 0 && errno != EINTR))
			break;
		if (n < 0)
			continue;
		s->written = n == 0;
		window_add(&s->window, (size_t)n);
		all += (size_t)n;
	}
}

/* The connection does not take any more.  What the receiver said before may be why. */
static void broken(struct sender *s)
{
	const char *why = s->peer.why;

	receive(s);
	if (s->stage != AWAY)
		drop_connection(s, why);
}

static bool has_room(const struct sender *s)
{
	return !s->written && s->window.end - s->window.begin < s->window.size;
}

static void check_time(struct sender *s)
{
	uint64_t now = mono_ns();

	if (s->stage == AWAY && !s->error && s->addresses && now >= s->retry_ns)
		dial(s);
	else if (s->stage == AWAY && s->beacon >= 0)
		announce(s);
	else if (s->stage > AWAY && s->stage < STREAMING && now - s->begun_ns > ms(HANDSHAKE_MS))
		drop_connection(s, s->stage == CONNECTING ? "it cannot be reached"
							  : "it does not answer");
	else if (s->stage == STREAMING && peer_alive(&s->peer))
		drop_connection(s, s->peer.why);
	if (!s->written && s->window.begin == s->window.end)
		s->progress_ns = now;
}

static short socket_events(const struct sender *s)
{
	if (s->stage == AWAY)
		return 0;
	if (s->stage == CONNECTING)
		return POLLOUT;
	return peer_has_output(&s->peer) ? POLLIN | POLLOUT : POLLIN;
}

static void step(struct sender *s)
{
	struct pollfd p[4] = {
	    {.fd = s->wake, .events = POLLIN},
	    {.fd = has_room(s) ? s->pipe : -1, .events = POLLIN},
	    {.fd = s->stage == AWAY ? s->listener : -1, .events = POLLIN},
	    {.fd = s->stage == AWAY ? -1 : s->peer.fd, .events = socket_events(s)},
	};
	uint64_t woken;

	poll(p, 4, TICK_MS);
	if (p[0].revents && read(s->wake, &woken, sizeof(woken)) < 0)
		return;
	if (p[1].revents)
		read_pipe(s);
	if (p[2].revents)
		accept_receiver(s);
	if (p[3].revents && s->stage == CONNECTING)
		connected(s);
	else if (p[3].revents & ~POLLOUT)
		receive(s);
	if (s->stage == STREAMING)
		fill_buffer(s);
	if (s->stage > CONNECTING && peer_send(&s->peer))
		broken(s);
	check_time(s);
	show(s);
}

static bool is_late(const struct sender *s, uint64_t since)
{
	if (!since)
		return false;
	since = since > s->progress_ns ? since : s->progress_ns;
	return mono_ns() - since > ms(s->config.deliver_ms);
}

/* Return: whether there is nothing to do any more. */
static bool over(struct sender *s)
{
	uint64_t ending;

	pthread_mutex_lock(&s->lock);
	ending = s->ending_ns;
	pthread_mutex_unlock(&s->lock);
	if (!s->done && !s->error && is_late(s, ending))
		s->error = -ETIMEDOUT;
	return s->done || s->error || is_cancelled(s);
}

static void send_cancel(struct sender *s)
{
	struct deadline deadline = deadline_in_ms(CANCEL_MS);

	if (s->stage != STREAMING || peer_put(&s->peer, WIRE_CANCEL, 0, NULL, 0))
		return;
	while (peer_has_output(&s->peer) && !deadline_passed(&deadline)) {
		struct pollfd p = {.fd = s->peer.fd, .events = POLLOUT};

		poll(&p, 1, TICK_MS);
		if (peer_send(&s->peer))
			break;
	}
}

static void *sender_thread(void *arg)
{
	struct sender *s = arg;

	privileges_keep(PRIVILEGES_NONE);
	while (!over(s))
		step(s);
	if (s->cancelled && !s->done)
		send_cancel(s);
	peer_end(&s->peer);
	close(s->pipe); /* who writes does not wait any more */
	s->pipe = -1;
	s->stage = AWAY;
	pthread_mutex_lock(&s->lock);
	s->state.gave_up = !s->done;
	pthread_mutex_unlock(&s->lock);
	show(s);
	return NULL;
}

void sender_free(struct sender *s)
{
	const int fd[] = {s->listener, s->beacon, s->pipe, s->wake};

	peer_end(&s->peer);
	for (unsigned int i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	if (s->addresses)
		freeaddrinfo(s->addresses);
	window_free(&s->window);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s);
}

static int open_announcement(struct sender *s, struct mp_err *err)
{
	char at[ENDPOINT_TEXT];
	int ret = endpoint_listen("0", &s->listener, at, err);

	if (ret)
		return ret;
	s->port = (uint16_t)atoi(strrchr(at, ':') + 1);
	s->beacon = beacon_open();
	return s->beacon < 0 ? mp_fail(err, MP_EXIT_FAILURE, s->beacon,
				       "cannot announce the recording: %s", strerror(-s->beacon))
			     : 0;
}

/* Return: 0 once data can be sent, or a negative errno with @err. */
static int connect_first(struct sender *s, struct mp_err *err)
{
	struct deadline deadline = deadline_in_ms(OPEN_MS);
	uint32_t tries = 0;

	for (const struct addrinfo *a = s->addresses; a; a = a->ai_next)
		tries++;
	while (s->stage != STREAMING) {
		if (s->config.to && (s->failures >= tries || deadline_passed(&deadline)))
			return mp_fail(err, MP_EXIT_OUTPUT, -ECONNREFUSED,
				       "no connection to the receiver at %.150s: %s", s->config.to,
				       s->state.why[0] ? s->state.why : "it does not answer");
		step(s);
	}
	return 0;
}

static int open_files(struct sender *s, int *fd, struct mp_err *err)
{
	int ends[2];

	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0 || pipe2(ends, O_CLOEXEC))
		return mp_fail(err, MP_EXIT_FAILURE, -errno, "no pipe: %s", strerror(errno));
	s->pipe = ends[0];
	*fd = ends[1];
	fcntl(s->pipe, F_SETFL, O_NONBLOCK);
	return 0;
}

static int prepare(struct sender *s, int *fd, struct mp_err *err)
{
	int ret = token_read(s->config.token_file, &s->token, err);

	if (!ret && window_init(&s->window, s->config.window))
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret)
		ret = s->config.to ? endpoint_resolve(s->config.to, &s->addresses, err)
				   : open_announcement(s, err);
	if (!ret)
		ret = open_files(s, fd, err);
	return ret;
}

int sender_open(const struct sender_config *config, struct sender **out, int *fd,
		struct mp_err *err)
{
	struct sender *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	s->config = *config;
	s->listener = s->beacon = s->pipe = s->wake = s->peer.fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	*fd = -1;
	ret = prepare(s, fd, err);
	if (!ret)
		ret = connect_first(s, err);
	if (!ret && (ret = thread_start(&s->thread, sender_thread, s)))
		mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start a thread: %s", strerror(-ret));
	if (ret) {
		if (*fd >= 0)
			close(*fd);
		sender_free(s);
		return ret;
	}
	*out = s;
	return 0;
}

void sender_look(struct sender *s, struct sender_state *state)
{
	pthread_mutex_lock(&s->lock);
	*state = s->state;
	pthread_mutex_unlock(&s->lock);
}

static void wait_for_change(struct sender *s, const struct deadline *deadline)
{
	const struct timespec until = {.tv_sec = (time_t)(deadline->at_ns / 1000000000u),
				       .tv_nsec = (long)(deadline->at_ns % 1000000000u)};

	pthread_mutex_lock(&s->lock);
	pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&s->lock);
}

int sender_wait(struct sender *s, uint64_t bytes, const struct deadline *deadline)
{
	struct sender_state now;

	for (sender_look(s, &now); now.delivered < bytes; sender_look(s, &now)) {
		if (now.gave_up)
			return -EPIPE;
		if (deadline_passed(deadline))
			return -ETIMEDOUT;
		wait_for_change(s, deadline);
	}
	return 0;
}

void sender_ending(struct sender *s)
{
	uint64_t one = 1;

	pthread_mutex_lock(&s->lock);
	s->ending_ns = s->ending_ns ? s->ending_ns : mono_ns();
	pthread_mutex_unlock(&s->lock);
	ignore_result(write(s->wake, &one, sizeof(one)));
}

void sender_cancel(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	s->cancelled = true;
	pthread_mutex_unlock(&s->lock);
	sender_ending(s);
}

int sender_finish(struct sender *s, struct mp_err *err)
{
	sender_ending(s);
	pthread_join(s->thread, NULL);
	if (s->done || s->cancelled)
		return 0;
	return mp_fail(err, MP_EXIT_OUTPUT, s->error,
		       "the recording was not delivered completely: %.100s has its first %llu "
		       "bytes: %s",
		       s->config.to ? s->config.to : "the receiver",
		       (unsigned long long)s->window.begin,
		       s->state.why[0] ? s->state.why : "it does not answer");
}
