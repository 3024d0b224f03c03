/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP, by libmicrohttpd: from the first byte of a request to the last of its answer, which comes
 * from the workers (pool.h).  All in one thread: no client makes another wait, because what an
 * answer is made of is read by the workers, and nothing here blocks.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "lib/err.h"
#include "server/access.h"
#include "server/listen.h"
#include "server/loop.h"
#include "server/pool.h"

struct http;
struct recordings;

/* Return: 0 with @h, to be closed by http_close(), or a negative errno with @err.  All pointers must outlive it;
 * the socket of @l is taken over. */
int http_open(struct loop *loop, const struct recordings *r, const struct access_rules *rules,
	      const struct pool_limits *limits, const struct listener *l, struct http **h,
	      struct mp_err *err);
/* Closes all connections and ends the workers. */
void http_close(struct http *h);

/* Does what is due now.  Return: milliseconds until it is to be called again, if nothing is ready in
 * the loop before. */
int http_run(struct http *h);

#endif
