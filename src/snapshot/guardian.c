/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/remains.h"
#include "snapshot/reap.h"

#define WATCH_MS 60000 /* a large copy takes long to exit */
#define LOOK_US	 5000

static bool is_clear(pid_t pid)
{
	struct remains r;
	bool clear;

	if (remains_find(pid, &r))
		return true; /* the target is gone */
	clear = !r.dead.list.n && !r.dying;
	remains_free(&r);
	return clear;
}

/* Reaps the copies.  The kernel might still be making one: the thread that makes it stops after
 * that, so the target is stopped at least once. */
static void clear(pid_t pid, const struct deadline *deadline)
{
	bool stopped = false;

	while (!(stopped && is_clear(pid)) && !deadline_passed(deadline)) {
		struct target t;
		uint32_t n;

		if (!target_look(&t, pid, NULL)) {
			stopped |= !reap_killed(&t, !stopped, &n, NULL);
			target_close(&t);
		} else if (is_clear(pid)) {
			return;
		}
		usleep(LOOK_US);
	}
}

static void guard(int fd, pid_t memprof, pid_t target)
{
	struct deadline deadline;
	ssize_t n;
	char byte;

	/* Signals to memprof's process group or terminal are not meant for the guardian. */
	setsid();
	prctl(PR_SET_NAME, GUARDIAN_NAME);
	close_range(0, (unsigned int)fd - 1, 0);
	close_range((unsigned int)fd + 1, ~0u, 0);
	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n)
		_exit(0);
	deadline = deadline_in_ms(WATCH_MS);
	/* The kernel closes memprof's files before it ends memprof's hold on the copy. */
	while (getppid() == memprof && !deadline_passed(&deadline))
		usleep(LOOK_US);
	clear(target, &deadline);
	_exit(0);
}

void guardian_start(struct guardian *g, pid_t target)
{
	pid_t memprof = getpid();
	int fd[2];

	memset(g, 0, sizeof(*g));
	if (pipe2(fd, O_CLOEXEC))
		return;
	g->pid = fork();
	if (!g->pid)
		guard(fd[0], memprof, target);
	close(fd[0]);
	if (g->pid > 0) {
		g->fd = fd[1];
		return;
	}
	close(fd[1]);
	g->pid = 0;
}

void guardian_end(struct guardian *g)
{
	if (!g->pid)
		return;
	/* Without this byte, the guardian would take the end of the pipe for memprof's death. */
	if (write(g->fd, "", 1) != 1)
		kill(g->pid, SIGKILL);
	close(g->fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
}
