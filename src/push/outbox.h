/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends the requests of one destination, in a thread of its own: the oldest first, and again after a while if the server
 * cannot take it (attempts are 1 s to 5 min apart, with jitter, or as the server's Retry-After says).  A request that the
 * server rejects is dropped, and counted.
 */
#ifndef PUSH_OUTBOX_H
#define PUSH_OUTBOX_H

#include <stddef.h>
#include <stdint.h>
#include "lib/err.h"
#include "push/destination.h"

struct outbox;

struct outbox_config {
	const struct destination *destination; /* with a URL */
	const char *
	    spool; /* directory, in which it makes one; NULL: a temporary one, removed at the end */
	uint64_t limit; /* bytes of the spool */
	/* Called by the thread for each change: @failed says why the last request could not be sent, or NULL. */
	void (*report)(void *ctx, const struct destination *d, const char *failed);
	void *ctx;
};

struct outbox_counts {
	uint64_t sent, rejected; /* requests */
	uint64_t dropped;	 /* too many waited, or the disk was full */
	uint32_t waiting;
};

/* Finds libcurl and opens the spool.  Return: 0 with @out, to be freed by outbox_stop(), or a negative errno with @err. */
int outbox_open(const struct outbox_config *c, struct outbox **out, struct mp_err *err);
/* Starts the thread.  Return: 0, or a negative errno with @err. */
int outbox_start(struct outbox *s, struct mp_err *err);
/* Adds a request, which is copied.  Does not wait for the server.  A failure is counted as dropped. */
void outbox_put(struct outbox *s, const char *query, const void *body, size_t n);
struct outbox_counts outbox_counts(struct outbox *s);
/* Sends what waits for at most @ms more, ends the thread and frees @s.  Return: the counts; what waits is lost if the spool is
 * temporary. */
struct outbox_counts outbox_stop(struct outbox *s, uint64_t ms);

#endif
