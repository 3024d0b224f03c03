/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends requests by libcurl, which is opened when the first one is sent: memprof starts faster, and runs on machines
 * without it. */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"

#define HTTP_ANSWER 4096 /* bytes kept of the body of an answer */

struct http;

struct http_request {
	const char *url, *type; /* type: of the body */
	const void *body;
	size_t n;
	const char *encoding;	   /* of the body, such as gzip; NULL: none */
	const char *const *header; /* more of them, "Name: value", ended by NULL */
};

struct http_answer {
	long status; /* of HTTP; 0: there was no answer, and @why says so */
	char why[256];
	uint64_t retry_after_s; /* 0: the server did not say */
	char body[HTTP_ANSWER + 1];
	size_t n;
};

/* Return: 0 with @out, or -ENOENT or -ENOMEM with @err: there is no libcurl. */
int http_new(struct http **out, struct mp_err *err);
void http_free(struct http *h);
/**
 * http_post() - send a request and wait for its answer
 * @cancelled: read by any thread; when it is set the request is given up soon
 * Certificates are checked.  Redirections are not followed, so that credentials go nowhere else.
 * Return: 0 with @a, also if there was no answer; -ECANCELED.
 */
int http_post(struct http *h, const struct http_request *r, const bool *cancelled,
	      struct http_answer *a);

#endif
