/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/fault.h"

#ifdef MEMPROF_FAULTS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @variable: NAME or NAME:N.  Return: whether this is the Nth passing of @name. */
static bool is_wanted(const char *variable, const char *name, atomic_long *passed)
{
	const char *wanted = getenv(variable);
	size_t length = strlen(name);
	long times = 1;

	if (!wanted || strncmp(wanted, name, length) || (wanted[length] && wanted[length] != ':'))
		return false;
	if (wanted[length])
		times = strtol(wanted + length + 1, NULL, 10);
	return atomic_fetch_add(passed, 1) + 1 == times;
}

void fault_point(const char *name)
{
	static atomic_long passed;
	const char *other = getenv("MEMPROF_FAULT_OF");
	const char *wanted_signal = getenv("MEMPROF_FAULT_SIGNAL");
	int sig = wanted_signal ? (int)strtol(wanted_signal, NULL, 10) : SIGKILL;

	if (!is_wanted("MEMPROF_FAULT", name, &passed))
		return;
	kill(other ? (pid_t)strtol(other, NULL, 10) : getpid(), sig);
	if (!other && sig == SIGKILL)
		pause();
}

bool fault_fail(const char *name)
{
	static atomic_long passed;

	return is_wanted("MEMPROF_FAIL", name, &passed);
}
#endif
