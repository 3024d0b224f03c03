/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "export/html.h"
#include "lib/deadline.h"
#include "server/call.h"
#include "server/clients.h"
#include "server/endpoint.h"
#include "server/no_tls.h"
#include "server/recordings.h"
#include "server/response.h"
#include "server/status.h"
#include "server/target.h"

#define CONNECTIONS	 1000u
#define CONNECTION_BYTES 65536u
#define SEND_SECONDS	 30u
#define BLOCK		 65536u
#define TICK_NS		 1000000000ull

/* The linker has to know these functions before it reads libmicrohttpd's archive. */
static int (*const instead_of_tls)(void) __attribute__((used)) = no_tls;

/*
 * A client that has closed its side may have left, or may only have no further requests, as
 * `printf ... | nc -N`: until something is sent to it, both look the same.  So its answer must begin
 * in this time; without a limit, programs that come and go would keep all workers busy.
 */
#define HALF_CLOSED_NS 2000000000ull

enum state {
	EXCHANGE_NEW,	   /* the header is complete */
	EXCHANGE_ACCEPTED, /* it may be answered */
	EXCHANGE_WAITING,  /* a worker was asked */
	EXCHANGE_HEAD,	   /* the worker's answer begins */
	EXCHANGE_REFUSED,  /* the worker has no answer */
	EXCHANGE_GONE,	   /* the client left */
};

/* A request and its answer. */
struct exchange {
	struct http *h;
	struct exchange *next, *before; /* in http.exchanges */
	struct MHD_Connection *connection;
	enum state state;
	struct target target;
	struct job *job; /* NULL: none, or it is done */
	int pipe;	 /* with the answer's bytes; -1: none */
	bool suspended;
	bool complete; /* nothing is missing from the answer */
	bool post;
	/* The client sees where the answer ends; otherwise its end is that of the connection. */
	bool chunked;
	uint64_t half_closed; /* when the client closed its side; 0: it has not */
	unsigned int status;
	char type[64], why[400];
	struct loop_watch client, data; /* while it is suspended; data: the pipe */
};

struct http {
	struct loop *loop;
	const struct recordings *recordings;
	const struct access_rules *rules;
	struct MHD_Daemon *daemon;
	struct loop_watch watch;
	struct pool *pool;
	struct clients clients;
	struct exchange *exchanges;
	uint64_t next_tick;
	bool closing;
	char cookie[32]; /* name; cookies do not tell ports apart */
};

/* ------------------------------------------------------------------ suspending -- */

static void cancel(struct exchange *x)
{
	if (x->job)
		pool_cancel(x->h->pool, x->job);
	x->job = NULL;
}

/* libmicrohttpd does not look at a suspended connection, so its end is watched here. */
static void suspend(struct exchange *x, bool for_data)
{
	struct loop *loop = x->h->loop;

	if (loop_add(loop, &x->client, x->half_closed ? 0 : EPOLLRDHUP) ||
	    (for_data && loop_add(loop, &x->data, EPOLLIN))) {
		/* Nothing would wake it up again. */
		loop_remove(loop, &x->client);
		cancel(x);
		x->state = EXCHANGE_GONE;
		return;
	}
	x->suspended = true;
	MHD_suspend_connection(x->connection);
}

static void resume(struct exchange *x)
{
	loop_remove(x->h->loop, &x->client);
	loop_remove(x->h->loop, &x->data);
	if (x->suspended)
		MHD_resume_connection(x->connection);
	x->suspended = false;
}

static void on_data(void *ctx)
{
	resume(ctx);
}

static void drop_exchange(struct exchange *x)
{
	cancel(x);
	x->state = EXCHANGE_GONE;
	resume(x);
}

static void on_client(void *ctx)
{
	struct exchange *x = ctx;
	struct pollfd p = {.fd = x->client.fd, .events = POLLRDHUP};

	if (poll(&p, 1, 0) > 0 && !(p.revents & (POLLHUP | POLLERR))) {
		x->half_closed = mono_ns();
		loop_remove(x->h->loop, &x->client);
		/* EPOLLHUP and EPOLLERR are always reported. */
		if (!loop_add(x->h->loop, &x->client, 0))
			return;
	}
	drop_exchange(x);
}

static void drop_half_closed(struct http *h, uint64_t now)
{
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (x->half_closed && x->state == EXCHANGE_WAITING &&
		    now - x->half_closed > HALF_CLOSED_NS)
			drop_exchange(x);
	}
}

static void on_head(void *request, unsigned int status, const char *type)
{
	struct exchange *x = request;

	x->state = EXCHANGE_HEAD;
	x->status = status;
	snprintf(x->type, sizeof(x->type), "%s", type);
	resume(x);
}

static void on_done(void *request, bool complete, unsigned int status, const char *why)
{
	struct exchange *x = request;

	x->job = NULL;
	x->complete = complete;
	if (x->state == EXCHANGE_WAITING) {
		x->state = EXCHANGE_REFUSED;
		x->status = status;
		snprintf(x->why, sizeof(x->why), "%s", why);
	}
	resume(x);
}

/* ------------------------------------------------------------------ answers -- */

static enum MHD_Result refuse_request(struct exchange *x, unsigned int status, const char *why)
{
	return response_refuse(x->connection, x->h->rules, status, why);
}

/* The end of the connection would look like that of the answer: with a reset the client sees that
 * something is missing. */
static ssize_t cut(struct exchange *x)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	if (!x->chunked)
		(void)connect(x->client.fd, &none, sizeof(none));
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_answer(void *ctx, uint64_t at, char *to, size_t room)
{
	struct exchange *x = ctx;
	ssize_t n;

	(void)at;
	if (x->state == EXCHANGE_GONE || x->h->closing)
		return cut(x);
	n = read(x->pipe, to, room);
	if (n > 0) {
		if (x->job)
			pool_taken(x->job, (uint64_t)n);
		return n;
	}
	if (!n && !x->job && x->complete)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if ((!n && !x->job) || (n < 0 && errno != EAGAIN))
		return cut(x);
	/* At the end of the pipe the worker still has to say that nothing is missing. */
	suspend(x, n < 0);
	return 0;
}

static enum MHD_Result send_answer(struct exchange *x, const char *method)
{
	struct MHD_Response *r =
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_answer, x, NULL);

	/* A browser saves a page with a recording's data, rather than showing it. */
	if (r && !strcmp(x->type, TYPE_HTML))
		MHD_add_response_header(r, "Content-Disposition", "attachment");
	/* Without it libmicrohttpd 0.9.75 ends the answer to a HEAD with the last chunk of a body. */
	if (r && !strcmp(method, "HEAD"))
		MHD_set_response_options(r, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
	return response_send(x->connection, x->h->rules, x->status, x->type, r);
}

/* ------------------------------------------------------------------ requests -- */

static const char *header(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_host(void *ctx, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	(void)kind, (void)value;
	*(unsigned int *)ctx += !strcasecmp(name, "Host");
	return MHD_YES;
}

static enum MHD_Result begin_request(struct exchange *x, const char *method)
{
	bool post = !strcmp(method, "POST");
	struct access_request r = {
	    .host = x->target.host ? x->target.host : header(x, "Host"),
	    .origin = header(x, "Origin"),
	    .authorization = header(x, "Authorization"),
	    .site = header(x, "Sec-Fetch-Site"),
	    /* Another site may link to the server, but not send forms to it. */
	    .mode = post ? NULL : header(x, "Sec-Fetch-Mode"),
	    .cookie = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, x->h->cookie)};
	const char *why, *length = header(x, "Content-Length");
	unsigned int status, hosts = 0;

	MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_host, &hosts);
	if (hosts > 1)
		return refuse_request(x, HTTP_BAD_REQUEST,
				      "the request has more than one Host header");
	/* A browser asks before it sends a page's request with a token or by POST. */
	if (!strcmp(method, "OPTIONS") && r.origin && access_is_named(x->h->rules, r.origin))
		return response_preflight(x->connection, x->h->rules);
	if (!strcmp(x->target.path, "/") && !strncmp(x->target.query, "token=", 6) &&
	    access_is_token(x->h->rules, x->target.query + 6))
		return response_log_in(x->connection, x->h->rules, x->h->cookie);
	status = access_check(x->h->rules, &r, &why);
	if (status != HTTP_OK)
		return refuse_request(x, status, why);
	x->post = post;
	if (!post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return response_wrong_method(x->connection, x->h->rules, "GET, HEAD, POST");
	if ((length && strcmp(length, "0") != 0) || header(x, "Transfer-Encoding"))
		return refuse_request(x, HTTP_TOO_LARGE, "requests have no body");
	x->state = EXCHANGE_ACCEPTED;
	return MHD_YES;
}

static bool is_live(const struct endpoint *e)
{
	return e->reading == READ_LIVE || e->reading == READ_STREAM;
}

/* Return: the key of the worker for @c, to be freed; NULL when out of memory.  A worker knows the recordings
 * that there were when it began: one that is asked for others than its own must know all of them. */
static char *key_of(const struct http *h, const struct call *c)
{
	const struct endpoint *e = c->endpoint;
	const char *id = e->reading == READ_NONE ? "" : h->recordings->at.at[c->recording].id;
	size_t all = h->recordings->at.n;
	char *key;
	int n = e->reading == READ_NONE	     ? asprintf(&key, "/%s %zu", e->path, all)
		: call_text(c, "with")	     ? asprintf(&key, "%s %s %zu", id, c->filter_text, all)
		: e->reading == ASK_RECORDER ? asprintf(&key, "recorder %s", id)
		: is_live(e)		     ? asprintf(&key, "live %s", id)
					     : asprintf(&key, "%s %s", id, c->filter_text);

	return n < 0 ? NULL : key;
}

/* Return: the page, for a browser that asks for the endpoint; else NULL. */
static const char *page_for(const struct exchange *x, const struct endpoint *e, size_t *size)
{
	const char *accept = header(x, "Accept");

	if (x->post || *e->path || !accept || !strcasestr(accept, "text/html"))
		return NULL;
	return html_page(size);
}

static enum MHD_Result ask(struct exchange *x)
{
	struct pool_request q = {.path = x->target.path, .query = x->target.query};
	struct mp_err err = {0};
	struct call c;
	unsigned int status =
	    call_parse(x->h->recordings, x->target.path, x->target.query, &c, &err);
	const char *page;
	bool wants_post;
	size_t size;
	char *key;
	int ret;

	if (status != HTTP_OK)
		return refuse_request(x, status, err.what);
	page = page_for(x, c.endpoint, &size);
	if (page) {
		call_free(&c);
		return response_page(x->connection, x->h->rules, page, size);
	}
	wants_post = c.endpoint->reading == ASK_RECORDER;
	q.key = key = key_of(x->h, &c);
	q.lasting = is_live(c.endpoint);
	call_free(&c);
	if (x->post != wants_post) {
		free(key);
		return response_wrong_method(x->connection, x->h->rules,
					     wants_post ? "POST" : "GET, HEAD");
	}
	ret = key ? pool_ask(x->h->pool, &q, x, &x->job, &x->pipe) : -ENOMEM;
	free(key);
	if (ret == -ENAMETOOLONG)
		return refuse_request(x, HTTP_URI_TOO_LONG, "the path is too long");
	if (ret)
		return refuse_request(x, HTTP_UNAVAILABLE,
				      ret == -EAGAIN
					  ? "too many requests are waiting"
					  : "not enough memory or files for the request");
	x->data.fd = x->pipe;
	x->state = EXCHANGE_WAITING;
	suspend(x, false);
	return MHD_YES;
}

/* ------------------------------------------------------------------ libmicrohttpd -- */

static void link_exchange(struct exchange *x)
{
	x->next = x->h->exchanges;
	if (x->next)
		x->next->before = x;
	x->h->exchanges = x;
}

static void unlink_exchange(struct exchange *x)
{
	if (x->next)
		x->next->before = x->before;
	if (x->before)
		x->before->next = x->next;
	else
		x->h->exchanges = x->next;
}

static int socket_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* Called when the request line is complete.  The URI is taken here, because later it is decoded. */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->h = ctx;
	x->connection = connection;
	x->pipe = -1;
	x->client = (struct loop_watch){.fd = socket_of(connection), .ready = on_client, .ctx = x};
	x->data = (struct loop_watch){.ready = on_data, .ctx = x};
	if (target_split(uri, &x->target)) {
		free(x);
		return NULL;
	}
	link_exchange(x);
	return x;
}

static struct client *client_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
	    ->socket_context;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **request)
{
	struct exchange *x = *request;
	struct client *client = client_of(connection);

	(void)ctx, (void)url, (void)data;
	if (!x || *size || x->h->closing)
		return MHD_NO;
	x->chunked = !strcmp(version, MHD_HTTP_VERSION_1_1);
	if (client && x->state == EXCHANGE_NEW)
		client_busy(client, true);
	switch (x->state) {
	case EXCHANGE_NEW:
		return begin_request(x, method);
	case EXCHANGE_ACCEPTED:
		return ask(x);
	case EXCHANGE_HEAD:
		return send_answer(x, method);
	case EXCHANGE_REFUSED:
		return refuse_request(x, x->status, x->why);
	default:
		return MHD_NO;
	}
}

static void exchange_free(struct exchange *x)
{
	cancel(x);
	loop_remove(x->h->loop, &x->client);
	loop_remove(x->h->loop, &x->data);
	if (x->pipe >= 0)
		close(x->pipe);
	unlink_exchange(x);
	target_free(&x->target);
	free(x);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode how)
{
	struct exchange *x = *request;
	struct client *client = client_of(connection);

	(void)ctx, (void)how;
	if (client)
		client_busy(client, false);
	if (x)
		exchange_free(x);
	*request = NULL;
}

/* libmicrohttpd does not tell the end of a request that has more parameters than it has room for. */
static void free_exchanges_of(struct http *h, const struct MHD_Connection *connection)
{
	struct exchange *next;

	for (struct exchange *x = h->exchanges; x; x = next) {
		next = x->next;
		if (x->connection == connection)
			exchange_free(x);
	}
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http *h = ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = clients_add(&h->clients, socket_of(connection));
		return;
	}
	free_exchanges_of(h, connection);
	if (*context)
		clients_remove(&h->clients, *context);
	*context = NULL;
}

static void on_ready(void *ctx)
{
	(void)ctx; /* http_run() does it */
}

static int start_listener(struct http *h, const struct listener *l, struct mp_err *err)
{
	h->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, l->port, NULL, NULL, on_request, h,
	    MHD_OPTION_LISTEN_SOCKET, l->fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
	    MHD_OPTION_CONNECTION_TIMEOUT, SEND_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION,
	    on_connection, h, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!h->daemon)
		return mp_fail(err, MP_EXIT_FAILURE, -EIO, "cannot start the HTTP server: %s",
			       strerror(errno));
	h->watch = (struct loop_watch){
	    .fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
	    .ready = on_ready};
	return loop_add(h->loop, &h->watch, EPOLLIN);
}

int http_open(struct loop *loop, const struct recordings *r, const struct access_rules *rules,
	      const struct pool_limits *limits, const struct listener *l, struct http **out,
	      struct mp_err *err)
{
	struct pool_events events = {on_head, on_done};
	struct http *h = calloc(1, sizeof(*h));
	int ret = h ? pool_open(loop, r, limits, &events, &h->pool) : -ENOMEM;

	if (ret) {
		free(h);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "out of memory");
	}
	h->loop = loop;
	h->recordings = r;
	h->rules = rules;
	h->clients.most = CONNECTIONS;
	snprintf(h->cookie, sizeof(h->cookie), "memprof_token_%u", l->port);
	ret = start_listener(h, l, err);
	if (ret)
		http_close(h);
	else
		*out = h;
	return ret;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	loop_remove(h->loop, &h->watch);
	/* libmicrohttpd does not stop while connections are suspended: none is from here on. */
	h->closing = true;
	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (x->suspended)
			drop_exchange(x);
	}
	if (h->daemon) {
		MHD_run(h->daemon);
		MHD_stop_daemon(h->daemon);
	}
	pool_close(h->pool);
	free(h);
}

int http_run(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t now = mono_ns();

	if (now >= h->next_tick) {
		h->next_tick = now + TICK_NS;
		pool_tick(h->pool);
		clients_tick(&h->clients);
		drop_half_closed(h, now);
	}
	MHD_run(h->daemon);
	pool_dispatch(h->pool);
	if (MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms < 1000)
		return (int)ms;
	return 1000;
}
