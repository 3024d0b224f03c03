/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How much memory a process may still have: resource limits and memory cgroups. */
#ifndef ATTACH_LIMITS_H
#define ATTACH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/check.h"

#define NO_LIMIT UINT64_MAX

struct limits {
	uint64_t address_space; /* bytes that RLIMIT_AS leaves */
	uint64_t cgroup;       /* bytes that its memory cgroups leave, file cache counted as free */
	bool shared_cgroup;    /* the caller is in the same one */
	char cgroup_path[256]; /* of the tightest one */
};

/* Return: 0 with @l filled, -ESRCH or another negative errno.  What cannot be read is no limit. */
__must_check int limits_read(pid_t pid, struct limits *l);

/* Bytes that the kernel thinks can be had without swapping (MemAvailable); NO_LIMIT: not told. */
uint64_t limits_machine(void);

/* The soft limit in a line of /proc/PID/limits that begins with @name.  Return: NO_LIMIT if it is
 * unlimited or not there. */
uint64_t limits_parse(const char *text, const char *name);
/* The path of the memory controller in the text of /proc/PID/cgroup: version 1's if there is one.
 * Return: the version, 0 if there is none or it does not fit. */
__must_check int limits_cgroup(const char *text, char *path, size_t size);

#endif
