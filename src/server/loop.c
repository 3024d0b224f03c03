/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/loop.h"

#include <errno.h>
#include <unistd.h>

int loop_open(struct loop *l)
{
	l->fd = epoll_create1(EPOLL_CLOEXEC);
	return l->fd < 0 ? -errno : 0;
}

void loop_close(struct loop *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int loop_add(struct loop *l, struct loop_watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	if (epoll_ctl(l->fd, EPOLL_CTL_ADD, w->fd, &e))
		return -errno;
	w->on = true;
	return 0;
}

void loop_remove(struct loop *l, struct loop_watch *w)
{
	if (w->on)
		(void)epoll_ctl(l->fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->on = false;
}

int loop_step(struct loop *l, int ms)
{
	struct epoll_event e;
	struct loop_watch *w;
	/* One at a time: what it does can remove the watches of the others. */
	int n = epoll_wait(l->fd, &e, 1, ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n) {
		w = e.data.ptr;
		w->ready(w->ctx);
	}
	return 0;
}
