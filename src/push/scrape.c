/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/scrape.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "stream/endpoint.h"

#define CLIENTS	     16u
#define CLIENT_BYTES 16384u
#define IDLE_SECONDS 10u
#define TYPE	     "text/plain; version=0.0.4; charset=utf-8"

/* libmicrohttpd calls on_request() when the head of a request is there, and again when the request is complete. */
enum state { NEW, WAITING, ANSWERED };

struct request {
	struct MHD_Connection *connection;
	enum state state;
};

struct scrape {
	struct MHD_Daemon *daemon;
	int epoll;
	char at[ENDPOINT_TEXT];
	struct request request[CLIENTS]; /* connection NULL: free */
	char *text;			 /* the last answer; NULL: there was none */
	size_t n;
	bool closing;
};

static enum MHD_Result respond(struct MHD_Connection *c, unsigned int status, const char *type,
			       const char *text, size_t n)
{
	struct MHD_Response *r =
	    MHD_create_response_from_buffer(n, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result ret = MHD_NO;

	if (r) {
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
		ret = MHD_queue_response(c, status, r);
		MHD_destroy_response(r);
	}
	return ret;
}

static enum MHD_Result refuse_request(struct MHD_Connection *c, unsigned int status,
				      const char *why)
{
	return respond(c, status, "text/plain; charset=utf-8", why, strlen(why));
}

static struct request *begin_request(struct scrape *s, struct MHD_Connection *c)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		if (!s->request[i].connection) {
			s->request[i] = (struct request){c, NEW};
			return &s->request[i];
		}
	}
	return NULL;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **context)
{
	struct scrape *s = ctx;
	struct request *r = *context;

	(void)version, (void)data;
	if (!r) {
		r = *context = begin_request(s, c);
		return r ? MHD_YES : MHD_NO;
	}
	if (*size) {
		*size = 0; /* a body, which has no meaning */
		return MHD_YES;
	}
	if (r->state == ANSWERED && s->text)
		return respond(c, MHD_HTTP_OK, TYPE, s->text, s->n);
	if (r->state == ANSWERED || s->closing)
		return refuse_request(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				      "the recorder has not answered yet\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse_request(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is possible\n");
	if (strcmp(url, "/metrics"))
		return refuse_request(c, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
	r->state = WAITING;
	MHD_suspend_connection(c);
	return MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **context,
			 enum MHD_RequestTerminationCode how)
{
	struct request *r = *context;

	(void)ctx, (void)c, (void)how;
	if (r)
		r->connection = NULL;
	*context = NULL;
}

int scrape_open(const char *at, struct scrape **out, struct mp_err *err)
{
	struct scrape *s = calloc(1, sizeof(*s));
	char local[ENDPOINT_TEXT];
	int fd = -1, ret;

	if (!s)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	snprintf(local, sizeof(local), "127.0.0.1:%.60s", at);
	ret = endpoint_listen(strchr(at, ':') ? at : local, &fd, s->at, err);
	if (ret) {
		free(s);
		return ret == -EINVAL
			   ? mp_fail(
				 err, MP_EXIT_USAGE, ret,
				 "--metrics: '%.60s' is not a port, or ADDR:PORT with an address "
				 "of this machine",
				 at)
			   : ret;
	}
	s->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
	    MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CLIENTS,
	    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CLIENT_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
	    MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	if (!s->daemon) {
		ret = errno ? -errno : -EIO;
		close(fd);
		free(s);
		return mp_fail(err, MP_EXIT_FAILURE, ret, "cannot start the HTTP server: %s",
			       strerror(-ret));
	}
	s->epoll = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	*out = s;
	return 0;
}

void scrape_close(struct scrape *s)
{
	if (!s)
		return;
	/* libmicrohttpd does not stop while connections are suspended. */
	s->closing = true;
	scrape_answer(s, NULL, 0);
	MHD_stop_daemon(s->daemon);
	free(s->text);
	free(s);
}

const char *scrape_at(const struct scrape *s)
{
	return s->at;
}

int scrape_fd(const struct scrape *s)
{
	return s->epoll;
}

bool scrape_run(struct scrape *s)
{
	MHD_run(s->daemon);
	for (size_t i = 0; i < CLIENTS; i++) {
		if (s->request[i].connection && s->request[i].state == WAITING)
			return true;
	}
	return false;
}

void scrape_answer(struct scrape *s, char *text, size_t n)
{
	free(s->text);
	s->text = text;
	s->n = n;
	for (size_t i = 0; i < CLIENTS; i++) {
		if (!s->request[i].connection || s->request[i].state != WAITING)
			continue;
		s->request[i].state = ANSWERED;
		MHD_resume_connection(s->request[i].connection);
	}
	MHD_run(s->daemon);
}
