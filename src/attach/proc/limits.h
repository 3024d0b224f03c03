/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How much more memory a process can get: resource limits and memory cgroups. */
#ifndef ATTACH_PROC_LIMITS_H
#define ATTACH_PROC_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"

#define NO_LIMIT UINT64_MAX

struct limits {
	uint64_t address_space; /* bytes left below RLIMIT_AS */
	uint64_t cgroup;	/* bytes left in its memory cgroups, file cache counted as free */
	bool shared_cgroup;	/* the caller is in the same cgroup */
	char cgroup_path[256];	/* of the cgroup with the fewest bytes left */
};

/* Return: 0 with @l filled, -ESRCH or another negative errno.  A limit that cannot be read is
 * reported as NO_LIMIT. */
__must_check int limits_read(pid_t pid, struct limits *l);

/* Bytes that the kernel estimates to be available without swapping (MemAvailable); NO_LIMIT:
 * unknown. */
uint64_t limits_machine(void);

/* Return: the soft limit in the line of /proc/PID/limits that begins with @name; NO_LIMIT if it is
 * unlimited or the line is missing. */
uint64_t limits_parse(const char *text, const char *name);
/* Finds the path of the memory controller in the text of /proc/PID/cgroup, that of version 1 if
 * there is one.  Return: the cgroup version; 0 if there is no path or it does not fit in @size
 * bytes. */
__must_check int limits_cgroup(const char *text, char *path, size_t size);

#endif
