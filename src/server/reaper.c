/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/deadline.h"

#define LAST_WAIT_MS 1000u

struct dying {
	struct reaper *reaper;
	pid_t pid;
	struct loop_watch end; /* of the process, by its pidfd */
};

static void reap(pid_t pid, int options)
{
	while (waitpid(pid, NULL, options) < 0 && errno == EINTR)
		;
}

static void forget(struct dying *d)
{
	struct reaper *r = d->reaper;

	loop_remove(r->loop, &d->end);
	close(d->end.fd);
	for (size_t i = 0; i < r->at.n; i++) {
		if (r->at.at[i] == d)
			r->at.at[i] = r->at.at[--r->at.n];
	}
	free(d);
}

static void on_end(void *ctx)
{
	struct dying *d = ctx;

	reap(d->pid, 0);
	forget(d);
}

void reaper_kill(struct reaper *r, pid_t pid)
{
	struct dying *d = calloc(1, sizeof(*d));
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	kill(pid, SIGKILL);
	if (fd < 0 || !d || vec_push(&r->at, d))
		goto wait_here;
	*d = (struct dying){r, pid, {.fd = fd, .ready = on_end, .ctx = d}};
	if (!loop_add(r->loop, &d->end, EPOLLIN))
		return;
	r->at.n--;
wait_here:
	reap(pid, 0);
	if (fd >= 0)
		close(fd);
	free(d);
}

void reaper_close(struct reaper *r)
{
	struct deadline end = deadline_in_ms(LAST_WAIT_MS);

	while (r->at.n) {
		struct dying *d = r->at.at[r->at.n - 1];
		struct pollfd p = {.fd = d->end.fd, .events = POLLIN};
		uint64_t now = mono_ns();

		(void)poll(&p, 1, now < end.at_ns ? (int)((end.at_ns - now) / 1000000u) : 0);
		reap(d->pid, WNOHANG);
		forget(d);
	}
	vec_free(&r->at);
}
