/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The cgroups of a process, and what container engines write into their names. */
#ifndef ATTACH_PROC_CGROUPS_H
#define ATTACH_PROC_CGROUPS_H

#include <stdbool.h>
#include <sys/types.h>
#include "lib/check.h"

#define CGROUP_CONTAINER 65 /* 64 digits */
#define CGROUP_POD	 37

struct cgroups {
	char *text; /* of /proc/PID/cgroup: lines "number:controllers:path" */
};

/**
 * cgroups_enter_machine() - see the cgroups of the first process of this pid namespace by their whole paths
 *
 * The kernel shows paths relative to the cgroup namespace of the process that reads them.  A container that shares the
 * machine's pid namespace usually has a cgroup namespace of its own.  Moves the calling thread, and the threads that it
 * starts from then on, into that of process 1.
 *
 * Return: 0, or a negative errno: without CAP_SYS_ADMIN and CAP_SYS_PTRACE, paths stay relative.
 */
__must_check int cgroups_enter_machine(void);

/* Return: 0 with @c, to be freed by cgroups_free(); or a negative errno. */
__must_check int cgroups_read(pid_t pid, struct cgroups *c);
void cgroups_free(struct cgroups *c);

/* Is one of them @path, or below it?  @path: begins with a slash. */
bool cgroups_in(const struct cgroups *c, const char *path);
/* Finds the id of the container, as docker, podman, containerd and CRI-O have it.  Return: whether there is one. */
bool cgroups_container(const struct cgroups *c, char id[CGROUP_CONTAINER]);
/* Finds the uid of the pod of Kubernetes.  Return: whether there is one. */
bool cgroups_pod(const struct cgroups *c, char uid[CGROUP_POD]);

#endif
