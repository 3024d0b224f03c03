/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The workers (worker.h) and the requests that wait for one.  A request goes to an idle worker that
 * has read the same recording with the same filter, else to a new one.
 *
 * No request harms the others: a worker that takes longer than the limit is ended, and so is one
 * whose client reads so slowly that others would wait for it.
 */
#ifndef SERVER_POOL_H
#define SERVER_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "server/loop.h"

struct pool;
struct job;
struct recordings;

struct pool_limits {
	uint32_t workers; /* processes at most */
	uint32_t waiting; /* requests that wait for one, at most */
	uint32_t seconds; /* until an answer begins, at most */
	uint64_t memory;  /* of a worker, bytes of data; 0: no limit */
};

/* Called with the request of pool_ask(); never by pool_ask() or pool_cancel() themselves. */
struct pool_events {
	/* The answer begins: its bytes can be read from the pipe. */
	void (*head)(void *request, unsigned int status, const char *type);
	/* No more bytes will come.  @complete: nothing is missing.  If head() was not called, @status and
	 * @why (one line) are the answer.  The job is then gone. */
	void (*done)(void *request, bool complete, unsigned int status, const char *why);
};

/* Return: 0 with @p, to be closed by pool_close(), or a negative errno.  @loop, @r: must outlive it. */
int pool_open(struct loop *loop, const struct recordings *r, const struct pool_limits *limits,
	      const struct pool_events *events, struct pool **p);
/* Ends all workers. */
void pool_close(struct pool *p);

/* A request, as call_parse() takes it. */
struct pool_request {
	const char *path, *query;
	const char *key; /* the same worker can answer requests with the same key */
	bool lasting;	 /* the worker stays: it does not only answer */
};

/**
 * pool_ask() - have a request answered
 * @q: copied
 * @fd: set to the pipe with the answer's bytes, non-blocking; belongs to the caller
 *
 * Return: 0 with @job, or a negative errno (-EAGAIN: too many are waiting).
 */
int pool_ask(struct pool *p, const struct pool_request *q, void *request, struct job **job,
	     int *fd);
/* The client has left: done() will not be called. */
void pool_cancel(struct pool *p, struct job *j);
/* @n bytes of the answer have been read from the pipe. */
void pool_taken(struct job *j, uint64_t n);
/* Gives the requests that wait to workers, in their order.  To be called after anything else was. */
void pool_dispatch(struct pool *p);
/* Enforces the limits.  To be called about once a second. */
void pool_tick(struct pool *p);

#endif
