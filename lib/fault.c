/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/fault.h"

#ifdef MEMPROF_FAULTS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is this the passing of @name that @wanted, NAME or NAME:N, means? */
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

bool fault_fail(const char *name)
{
	static atomic_long passed;
	const char *wanted = getenv("MEMPROF_FAIL"), *after = getenv("MEMPROF_FAIL_AFTER");

	return wanted && (!after || !access(after, F_OK)) && is_wanted(wanted, name, &passed);
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
