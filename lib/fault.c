/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/fault.h"

#ifdef MEMPROF_FAULTS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fault_point(const char *name)
{
	static atomic_long passed;
	const char *wanted = getenv("MEMPROF_FAULT"), *other = getenv("MEMPROF_FAULT_OF");
	size_t length = strlen(name);
	const char *wanted_signal = getenv("MEMPROF_FAULT_SIGNAL");
	int sig = wanted_signal ? (int)strtol(wanted_signal, NULL, 10) : SIGKILL;
	long times = 1;

	if (!wanted || strncmp(wanted, name, length) || (wanted[length] && wanted[length] != ':'))
		return;
	if (wanted[length])
		times = strtol(wanted + length + 1, NULL, 10);
	if (atomic_fetch_add(&passed, 1) + 1 != times)
		return;
	kill(other ? (pid_t)strtol(other, NULL, 10) : getpid(), sig);
	if (!other && sig == SIGKILL)
		pause();
}
#endif
