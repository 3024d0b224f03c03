/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Children that say when they are ready, and processes that are stopped so that their memory can be walked. */
#ifndef TESTS_STOPPED_H
#define TESTS_STOPPED_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/target.h"
#include "snapshot/image.h"

/* Waits until a process with one thread sleeps.  On its way there it is in the C library, and could be taken
 * for a thread that is changing the heap. */
static inline void child_asleep(pid_t pid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'S') {
		FILE *stat = fopen(path, "r");

		assert_non_null(stat);
		assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
		fclose(stat);
		assert_int_not_equal(state, 'Z');
		usleep(1000);
	}
}

/* Runs @work in a child, which writes a byte to @ready when it is ready, and then sleeps.  Return: its pid,
 * when it sleeps; to be ended by child_end(). */
static inline pid_t child_start(void (*work)(int ready))
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		work(ready[1]);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	child_asleep(pid);
	return pid;
}

static inline void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A process all of whose threads are stopped. */
struct stopped {
	struct target target;
	struct image img;
};

/* Stops a process and opens its memory.  @s: to be closed by stopped_close(). */
static inline void stopped_open(struct stopped *s, pid_t pid)
{
	struct deadline patience = deadline_in_ms(20000);
	struct mp_err err = {0};

	assert_int_equal(target_look(&s->target, pid, &err), 0);
	assert_int_equal(target_seize(&s->target, &patience, &err), 0);
	assert_int_equal(target_stop(&s->target, &patience, &err), 0);
	image_init(&s->img, s->target.arch, pid);
	assert_int_equal(image_take_threads(&s->img, &s->target), 0);
	assert_int_equal(image_open_process(&s->img, pid, &err), 0);
}

/* Replaces @len bytes at @addr of the process by those at @from. */
static inline void stopped_write(const struct stopped *s, uint64_t addr, const void *from,
				 size_t len)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", s->img.pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, from, len, (off_t)addr), len);
	close(fd);
}

/* Lets the process continue. */
static inline void stopped_close(struct stopped *s)
{
	image_close(&s->img);
	target_close(&s->target);
}

#endif
