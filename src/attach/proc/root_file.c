/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/root_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

int root_open(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", proc_of(pid));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Finds a file without opening it.  Return: an O_PATH descriptor or -errno. */
static int find_file(int root, const char *path)
{
	char copy[PATH_MAX], *part, *rest = copy;
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0), next;

	if (strlen(path) >= sizeof(copy) || path[0] != '/') {
		close(at);
		return -EINVAL;
	}
	strcpy(copy, path);
	while (at >= 0 && (part = strsep(&rest, "/"))) {
		if (!*part)
			continue;
		next = strcmp(part, "..") != 0 ? openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC)
					       : (errno = EINVAL, -1);
		if (next < 0)
			next = -errno;
		close(at);
		at = next;
	}
	return at;
}

static int check(int fd, uint32_t uid, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	if (S_ISLNK(st->st_mode))
		return -ELOOP;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	return st->st_uid && st->st_uid != uid ? -EPERM : 0;
}

int root_file_open(int root, const char *path, uint32_t uid, struct stat *st)
{
	int found = find_file(root, path), fd, ret;
	char link[64];

	if (found < 0)
		return found == -ENOTDIR ? -ENOENT : found;
	ret = check(found, uid, st);
	if (ret) {
		close(found);
		return ret;
	}
	/* The file that was checked, not what has its name now. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(found);
	return fd;
}
