/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits for several files at once (epoll) and calls a function for each that is ready. */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop {
	int fd;
};

struct loop_watch {
	int fd;
	bool on; /* set by loop_add(), cleared by loop_remove() */
	/* Can add and remove watches, also its own. */
	void (*ready)(void *ctx);
	void *ctx;
};

/* Return: 0, or a negative errno. */
int loop_open(struct loop *l);
void loop_close(struct loop *l);
/* @events: as for epoll_ctl().  @w must stay where it is until loop_remove().  Return: 0 or a negative errno. */
int loop_add(struct loop *l, struct loop_watch *w, uint32_t events);
/* Does nothing if @w is not on. */
void loop_remove(struct loop *l, struct loop_watch *w);
/* Waits for at most @ms milliseconds, and serves one file that is ready.  Return: 0 or a negative errno. */
int loop_step(struct loop *l, int ms);

#endif
