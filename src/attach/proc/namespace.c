/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/namespace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

/* The inode numbers of the first namespaces: include/linux/proc_ns.h. */
static const struct {
	const char *kind;
	ino_t ino;
} first[] = {{"cgroup", 0xeffffffb}, {"pid", 0xeffffffc}, {"user", 0xeffffffd}};

bool namespace_is_inner(const char *kind)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (stat(path, &st))
		return false;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		if (!strcmp(kind, first[i].kind))
			return st.st_ino != first[i].ino;
	}
	return false;
}

bool namespace_is_other(pid_t pid, const char *kind)
{
	char own[64], path[64], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", proc_of(pid), kind);
	a = readlink(own, ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && b > 0 && (a != b || memcmp(ours, theirs, (size_t)a));
}
