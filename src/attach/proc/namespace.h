/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Namespaces (namespaces(7)).  A kind is a name of /proc/PID/ns: "user", "pid", "cgroup", "mnt" ... */
#ifndef ATTACH_PROC_NAMESPACE_H
#define ATTACH_PROC_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Is memprof in another namespace than the machine's first one?  @kind: "user", "pid" or "cgroup".  Return: false
 * also if the kernel has no namespaces of this kind. */
bool namespace_is_inner(const char *kind);
/* Is @pid in another namespace than memprof?  Return: false also if that cannot be read. */
bool namespace_is_other(pid_t pid, const char *kind);

#endif
