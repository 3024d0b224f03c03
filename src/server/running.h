/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording in progress, as its recorder sees it: a look about once a second (top/feed.h), what
 * the looks were, and the clients that get each new one.  In a worker of its own.
 */
#ifndef SERVER_RUNNING_H
#define SERVER_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/err.h"
#include "top/feed.h"
#include "top/past.h"

struct running;
struct recording;

/* What the program had at a look. */
struct running_point {
	uint64_t time_ns; /* since the recording began */
	uint64_t live_bytes, live_blocks, allocations, allocated_bytes;
	uint64_t resident_bytes; /* of the last sample of the process; 0: none yet */
};

/* Finds the process that is being recorded to the file, by a recorder that lives.  Return: 0 with @pid, or -ESRCH with
 * @err: there is none. */
int running_find(const struct recording *r, pid_t *pid, struct mp_err *err);

/* Writes the present look as an event of text/event-stream.  Return: 0 with @text, to be freed, of @n bytes, or a
 * negative errno. */
typedef int running_event(struct running *l, char **text, size_t *n);

/* Return: 0 with @l, to be closed by running_close(), and the first look taken; or a negative errno with
 * @err, -ESRCH as running_find(). */
int running_open(const struct recording *r, running_event *event, struct running **l,
		 struct mp_err *err);
void running_close(struct running *l);

/* Return: a descriptor that is readable when running_serve() has something to do. */
int running_fd(const struct running *l);
/* Takes a look that is ready, tells the subscribers, and asks for the next one when it is time.  Return: milliseconds until
 * it is to be called again. */
int running_serve(struct running *l);
/* Return: whether the recording has ended: then there are no more looks. */
bool running_ended(const struct running *l);

/* Sends each look to the pipe, as an event of text/event-stream, and the present one at once.  A
 * client that does not read misses looks.  @pipe: taken over. */
void running_subscribe(struct running *l, int pipe);

struct model *running_model(struct running *l);
const struct feed_state *running_state(const struct running *l);
const struct past *running_past(const struct running *l);
/* Return: the looks so far, oldest first; at most RUNNING_POINTS, evenly spaced.  @n: their number */
const struct running_point *running_points(const struct running *l, uint32_t *n);
#define RUNNING_POINTS 2000u

#endif
