/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The stores that a command pushes to, for all processes that it records: each has an outbox, or is a directory. */
#ifndef PUSH_STORES_H
#define PUSH_STORES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "push/destination.h"
#include "push/outbox.h"

struct body;
struct stores;

struct stores_config {
	struct destination destination[PUSH_DESTINATIONS];
	size_t n;
	const char *spool; /* directory; NULL: a temporary one */
	uint64_t limit;	   /* bytes of the spool of a destination, and of a directory */
	/* Called by any thread: @failed says why nothing arrives at @d; NULL: it does again. */
	void (*report)(void *ctx, const struct destination *d, const char *failed);
	void *ctx;
};

/* Finds libcurl and opens the spools; starts no thread.  @c must stay.  Return: 0 with @out, or a negative errno with @err. */
int stores_open(const struct stores_config *c, struct stores **out, struct mp_err *err);
/* Starts the threads that send.  Return: 0, or a negative errno with @err. */
int stores_start(struct stores *s, struct mp_err *err);
/* Brings the body of a window to store @i; can be called by several threads.  @name, @pid: of the process; @unix_ns: the
 * window's start.  Does not wait for a server.  A failure is counted. */
void stores_put(struct stores *s, size_t i, const char *name, pid_t pid, uint64_t unix_ns,
		const struct body *b);
const struct stores_config *stores_config(const struct stores *s);
struct outbox_counts stores_counts(struct stores *s, size_t i);
/* Sends what waits for at most @ms more, and frees @s.  Return: the sum of the counts of all stores. */
struct outbox_counts stores_close(struct stores *s, uint64_t ms);

#endif
