/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/fault.h"

#ifdef MEMPROF_FAULTS
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return: whether this is the pass of @name that @wanted (NAME or NAME:N) selects. */
static bool is_wanted(const char *wanted, const char *name, atomic_long *passed)
{
	size_t length = strlen(name);
	long times = 1;

	if (!wanted || strncmp(wanted, name, length) || (wanted[length] && wanted[length] != ':'))
		return false;
	if (wanted[length])
		times = strtol(wanted + length + 1, NULL, 10);
	return atomic_fetch_add(passed, 1) + 1 == times;
}

static bool is_to_fail(const char *name, atomic_long *passed)
{
	const char *wanted = getenv("MEMPROF_FAIL"), *after = getenv("MEMPROF_FAIL_AFTER");

	return wanted && (!after || !access(after, F_OK)) && is_wanted(wanted, name, passed);
}

bool fault_fail(const char *name)
{
	static atomic_long passed;

	return is_to_fail(name, &passed);
}

bool fault_call(const char *place, atomic_long *passed)
{
	const char *path = getenv("MEMPROF_FAIL_LIST");
	int fd;

	if (!path)
		return is_to_fail(place, passed);
	fd = atomic_fetch_add(passed, 1) ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (fd >= 0) {
		dprintf(fd, "%s\n", place);
		close(fd);
	}
	return false;
}

void fault_point(const char *name)
{
	static atomic_long passed;
	const char *wanted = getenv("MEMPROF_FAULT"), *other = getenv("MEMPROF_FAULT_OF");
	const char *wanted_signal = getenv("MEMPROF_FAULT_SIGNAL");
	int sig = wanted_signal ? (int)strtol(wanted_signal, NULL, 10) : SIGKILL;

	if (!is_wanted(wanted, name, &passed))
		return;
	kill(other ? (pid_t)strtol(other, NULL, 10) : getpid(), sig);
	if (!other && sig == SIGKILL)
		pause();
}
#endif
