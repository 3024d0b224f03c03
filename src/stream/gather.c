/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/gather.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "stream/beacon.h"
#include "stream/endpoint.h"
#include "stream/peer.h"

#define TICK_MS	   100
#define MOST_NEW   256u /* connections that have not proven that they have the token */
#define ACK_BYTES  (256u << 10)
#define ACK_NS	   100000000u
#define AGAIN_NS   5000000000u /* between two attempts to reach a sender that announces itself */
#define MOST_HEARD 1024u
#define CLOSE_NS   1000000000u
#define CONNECT_NS 5000000000u
#define PROOF_NS   10000000000u /* from the connection until the token is proven */

struct client {
	struct peer peer;
	bool connecting;
	char from[ENDPOINT_TEXT];
	uint64_t begun_ns;
	struct stored *file; /* NULL: before OPEN */
	bool fresh;	     /* this connection began the file */
	uint64_t acked, acked_ns;
	bool last;	  /* nothing is heard any more: closes when the other side does */
	uint64_t over_ns; /* when all was sent */
	bool gone;
};

/* A sender that announced itself. */
struct heard {
	uint8_t id[WIRE_ID];
	uint64_t tried_ns;
};

struct gather {
	const struct gather_config *config;
	VEC(struct client *) clients;
	VEC(struct heard) heard;
	uint32_t complete;
};

static bool is_new(const struct client *c)
{
	return c->connecting || c->peer.stage != PEER_READY;
}

/* Closes a connection.  @why: NULL: it ended well. */
static void end_client(struct gather *g, struct client *c, const char *why)
{
	const struct gather_notices *n = &g->config->notices;

	if (c->gone)
		return;
	if (c->file && !c->file->complete && why)
		n->lost(n->ctx, c->file, why);
	else if (!c->file && why)
		n->refused(n->ctx, c->from, why);
	if (c->file)
		store_pause(c->file);
	c->file = NULL;
	peer_end(&c->peer);
	c->gone = true;
}

/* The connection is closed when its output buffer is empty; frames that arrive are ignored. */
static void finish_client(struct client *c)
{
	if (c->file)
		store_pause(c->file);
	c->file = NULL;
	c->last = true;
}

/* Sends a last frame, and closes when it is sent. */
static void give_up(struct gather *g, struct client *c, const char *why, enum wire_type type,
		    uint64_t offset)
{
	const struct gather_notices *n = &g->config->notices;
	bool says_why = type == WIRE_FAIL;

	if (peer_put(&c->peer, type, offset, says_why ? why : NULL, says_why ? strlen(why) : 0)) {
		end_client(g, c, why);
		return;
	}
	if (c->file)
		n->lost(n->ctx, c->file, why);
	else
		n->refused(n->ctx, c->from, why);
	finish_client(c);
}

static void fail(struct gather *g, struct client *c, int error)
{
	give_up(g, c, strerror(-error), WIRE_FAIL, 0);
}

/* So many at once are not senders: the one that waits longest makes room. */
static void limit_new(struct gather *g)
{
	struct client *oldest = NULL;
	uint32_t n = 0;

	vec_for_each (&g->clients, it) {
		if ((*it)->gone || !is_new(*it))
			continue;
		n++;
		oldest = oldest && oldest->begun_ns < (*it)->begun_ns ? oldest : *it;
	}
	if (n >= MOST_NEW)
		end_client(g, oldest, "too many connections do not prove that they have the token");
}

/* Return: NULL: out of memory; @fd is then closed. */
static struct client *add_client(struct gather *g, int fd, const union endpoint *from)
{
	struct client *c = calloc(1, sizeof(*c));

	limit_new(g);
	if (!c || vec_push(&g->clients, c)) {
		free(c);
		close(fd);
		return NULL;
	}
	c->peer.fd = fd;
	c->begun_ns = mono_ns();
	endpoint_text(&from->any, c->from);
	return c;
}

static void begin_file(struct gather *g, struct client *c)
{
	if (peer_begin(&c->peer, c->peer.fd, WIRE_RECEIVER, g->config->token))
		end_client(g, c, c->peer.why);
}

static void accept_all(struct gather *g)
{
	union endpoint from;
	int fd;

	while ((fd = endpoint_accept(g->config->listener, &from)) >= 0) {
		struct client *c = add_client(g, fd, &from);

		if (c)
			begin_file(g, c);
	}
}

/* Another connection with the id of a recording shows that the earlier one is dead. */
static void take_over(struct gather *g, const struct client *c, const uint8_t *id)
{
	vec_for_each (&g->clients, it) {
		if (*it != c && !(*it)->gone && (*it)->file &&
		    !memcmp((*it)->file->id, id, WIRE_ID))
			end_client(g, *it, "the sender connected again");
	}
}

static void open_file(struct gather *g, struct client *c, const struct wire_frame *f)
{
	const struct gather_notices *n = &g->config->notices;
	char name[WIRE_NAME + 1];
	struct stored *file;
	uint64_t has;
	int ret;

	if (c->file || f->length < WIRE_ID) {
		end_client(g, c, "it sent a frame that is not valid");
		return;
	}
	store_clean_name(f->payload + WIRE_ID, f->length - WIRE_ID, name);
	take_over(g, c, f->payload);
	ret = store_begin(g->config->store, f->payload, name, f->offset, &file, &has);
	if (ret == -ESTALE)
		give_up(g, c, "its recording's first bytes are not here any more", WIRE_ACK, has);
	else if (ret)
		fail(g, c, ret);
	if (ret)
		return;
	c->file = file;
	c->acked = file->bytes;
	c->acked_ns = mono_ns();
	if (peer_put(&c->peer, WIRE_ACK, file->bytes, NULL, 0)) {
		end_client(g, c, "out of memory");
		return;
	}
	c->fresh = !file->bytes;
	if (!file->complete)
		(c->fresh ? n->begun : n->continued)(n->ctx, file, c->from);
}

static void append_frame(struct gather *g, struct client *c, const struct wire_frame *f)
{
	int ret;

	if (f->offset != c->file->bytes || !f->length) {
		end_client(g, c, "it sent a frame that is not valid");
		return;
	}
	ret = store_append(c->file, f->payload, f->length);
	if (ret)
		fail(g, c, ret);
}

static void complete(struct gather *g, struct client *c, const struct wire_frame *f)
{
	const struct gather_notices *n = &g->config->notices;
	bool again = c->file->complete;
	int ret;

	if (f->offset != c->file->bytes) {
		end_client(g, c, "it sent a frame that is not valid");
		return;
	}
	ret = store_complete(g->config->store, c->file);
	if (ret) {
		fail(g, c, ret);
		return;
	}
	if (peer_put(&c->peer, WIRE_DONE, c->file->bytes, NULL, 0)) {
		end_client(g, c, "out of memory");
		return;
	}
	/* The sender asks again if it did not receive this. */
	if (!again) {
		n->complete(n->ctx, c->file);
		g->complete++;
	}
	finish_client(c);
}

/* The recording did not begin after all. */
static void cancel(struct gather *g, struct client *c)
{
	const struct gather_notices *n = &g->config->notices;

	if (!c->fresh || c->file->complete) {
		end_client(g, c, "it sent a frame that is not valid");
		return;
	}
	n->cancelled(n->ctx, c->file);
	store_remove(g->config->store, c->file);
	c->file = NULL;
	c->last = true;
}

static void take_frame(struct gather *g, struct client *c, const struct wire_frame *f)
{
	bool without_offset = f->type == WIRE_PING || f->type == WIRE_CANCEL;

	if ((f->length && f->type != WIRE_OPEN && f->type != WIRE_DATA) ||
	    (f->offset && without_offset))
		end_client(g, c, "it sent a frame that is not valid");
	else if (f->type == WIRE_PING)
		c->acked_ns = 0;
	else if (f->type == WIRE_OPEN)
		open_file(g, c, f);
	else if (!c->file)
		end_client(g, c, "it sent a frame that is not valid");
	else if (f->type == WIRE_DATA)
		append_frame(g, c, f);
	else if (f->type == WIRE_END)
		complete(g, c, f);
	else
		cancel(g, c);
}

static void receive(struct gather *g, struct client *c)
{
	struct wire_frame f;
	int ret = peer_receive(&c->peer);

	while (!ret && !c->last && (ret = peer_next(&c->peer, &f)) > 0) {
		take_frame(g, c, &f);
		if (c->gone)
			return;
		ret = 0;
	}
	if (c->last)
		c->peer.in.begin = c->peer.in.end;
	if (ret)
		end_client(g, c, c->last ? NULL : c->peer.why);
}

/* Not more often than the sender needs it, and not while earlier ones wait to be sent. */
static void acknowledge(struct client *c)
{
	uint64_t now = mono_ns();

	if (!c->file || peer_has_output(&c->peer) ||
	    (c->acked_ns && c->file->bytes - c->acked < ACK_BYTES &&
	     (c->file->bytes == c->acked || now - c->acked_ns < ACK_NS)))
		return;
	if (peer_put(&c->peer, WIRE_ACK, c->file->bytes, NULL, 0))
		return;
	c->acked = c->file->bytes;
	c->acked_ns = now;
}

/* Closing a socket with bytes that were received and not read would drop those that are being sent. */
static void close_slowly(struct gather *g, struct client *c)
{
	if (!c->over_ns) {
		c->over_ns = mono_ns();
		shutdown(c->peer.fd, SHUT_WR);
	} else if (mono_ns() - c->over_ns > CLOSE_NS) {
		end_client(g, c, NULL);
	}
}

static void serve_connecting(struct gather *g, struct client *c, short events)
{
	int ret = events ? endpoint_connected(c->peer.fd) : 0;

	if (ret) {
		end_client(g, c, strerror(-ret));
	} else if (events) {
		c->connecting = false;
		begin_file(g, c);
	} else if (mono_ns() - c->begun_ns > CONNECT_NS) {
		end_client(g, c, "it cannot be reached");
	}
}

static void serve(struct gather *g, struct client *c, short events)
{
	if (c->gone)
		return;
	if (c->connecting) {
		serve_connecting(g, c, events);
		return;
	}
	if (events & ~POLLOUT)
		receive(g, c);
	if (!c->gone && is_new(c) && mono_ns() - c->begun_ns > PROOF_NS)
		end_client(g, c, "it did not prove in time that it has the token");
	if (c->gone)
		return;
	acknowledge(c);
	if (peer_send(&c->peer) || peer_alive(&c->peer))
		end_client(g, c, c->last ? NULL : c->peer.why);
	else if (c->last && !peer_has_output(&c->peer))
		close_slowly(g, c);
}

static struct heard *heard_of(struct gather *g, const uint8_t id[WIRE_ID])
{
	struct heard fresh = {0};

	vec_for_each (&g->heard, it) {
		if (!memcmp(it->id, id, WIRE_ID))
			return it;
	}
	if (g->heard.n >= MOST_HEARD)
		g->heard.n = 0; /* it only limits how often senders are called */
	memcpy(fresh.id, id, WIRE_ID);
	return vec_push(&g->heard, fresh) ? NULL : &g->heard.at[g->heard.n - 1];
}

static bool is_received(const struct gather *g, const uint8_t id[WIRE_ID])
{
	vec_for_each (&g->clients, it) {
		if (!(*it)->gone && (*it)->file && !memcmp((*it)->file->id, id, WIRE_ID))
			return true;
	}
	return false;
}

/* Connects to a sender that announced itself, unless it is known. */
static void call(struct gather *g, const struct beacon *b, const union endpoint *at)
{
	struct heard *h = heard_of(g, b->id);
	struct client *c;
	int fd;

	if (!h || is_received(g, b->id) || (h->tried_ns && mono_ns() - h->tried_ns < AGAIN_NS))
		return;
	h->tried_ns = mono_ns();
	fd = endpoint_connect(&at->any, sizeof(*at));
	c = fd < 0 ? NULL : add_client(g, fd, at);
	if (c)
		c->connecting = true;
}

static void hear_beacons(struct gather *g)
{
	union endpoint from;
	struct beacon b;

	for (unsigned int i = 0; i < MOST_HEARD; i++) {
		int got = beacon_hear(g->config->beacons, &b, &from);

		if (got <= 0)
			break;
		call(g, &b, &from);
	}
}

static void forget_gone(struct gather *g)
{
	size_t n = 0;

	vec_for_each (&g->clients, it) {
		if ((*it)->gone)
			free(*it);
		else
			g->clients.at[n++] = *it;
	}
	g->clients.n = n;
}

static short events_of(const struct client *c)
{
	if (c->connecting)
		return POLLOUT;
	return (short)(POLLIN | (peer_has_output(&c->peer) ? POLLOUT : 0));
}

/* Are as many recordings complete as were wanted, and their senders know it? */
static bool is_enough(const struct gather *g)
{
	if (!g->config->most || g->complete < g->config->most)
		return false;
	vec_for_each (&g->clients, it) {
		if ((*it)->last)
			return false;
	}
	return true;
}

/* Return: 1, 0: it is time to end, or a negative errno. */
static int step(struct gather *g, struct pollfd *p)
{
	size_t n = g->clients.n;

	p[0] = (struct pollfd){.fd = g->config->stop, .events = POLLIN};
	p[1] = (struct pollfd){.fd = g->config->listener, .events = POLLIN};
	p[2] = (struct pollfd){.fd = g->config->beacons, .events = POLLIN};
	for (size_t i = 0; i < n; i++)
		p[3 + i] = (struct pollfd){.fd = g->clients.at[i]->peer.fd,
					   .events = events_of(g->clients.at[i])};
	if (poll(p, 3 + n, TICK_MS) < 0 && errno != EINTR)
		return -errno;
	if (p[0].revents)
		return 0;
	for (size_t i = 0; i < n; i++)
		serve(g, g->clients.at[i], p[3 + i].revents);
	if (p[1].revents)
		accept_all(g);
	if (p[2].revents)
		hear_beacons(g);
	forget_gone(g);
	return !is_enough(g);
}

int gather_run(const struct gather_config *config, struct mp_err *err)
{
	struct gather g = {.config = config};
	int ret = 1;

	while (ret > 0) {
		struct pollfd *p = calloc(3 + g.clients.n, sizeof(*p));

		ret = p ? step(&g, p) : -ENOMEM;
		free(p);
	}
	vec_for_each (&g.clients, it) {
		end_client(&g, *it, "memprof gather ends");
		free(*it);
	}
	vec_free(&g.clients);
	vec_free(&g.heard);
	return ret ? mp_fail(err, MP_EXIT_FAILURE, ret, "%s", strerror(-ret)) : 0;
}
