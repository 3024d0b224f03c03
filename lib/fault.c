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
	long times = 1;

	if (!wanted || strncmp(wanted, name, length) || (wanted[length] && wanted[length] != ':'))
		return;
	if (wanted[length])
		times = strtol(wanted + length + 1, NULL, 10);
	if (atomic_fetch_add(&passed, 1) + 1 != times)
		return;
	if (other) {
		kill((pid_t)strtol(other, NULL, 10), SIGKILL);
		return;
	}
	kill(getpid(), SIGKILL);
	pause();
}
#endif
