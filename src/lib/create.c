/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/create.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return: the number of the descriptor that @path names, or -1. */
static int own_descriptor(const char *path)
{
	char *end;
	long fd;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	if (strncmp(path, "/dev/fd/", 8) || path[8] < '0' || path[8] > '9')
		return -1;
	fd = strtol(path + 8, &end, 10);
	return *end || fd > 1 << 20 ? -1 : (int)fd;
}

int create_file(const char *path)
{
	struct stat st;
	int fd;

	if (!lstat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			return S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
		if (unlink(path))
			return -errno;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int open_output(const char *path)
{
	int own = own_descriptor(path), fd;

	if (own < 0 && strcmp(path, "/dev/null") != 0)
		return create_file(path);
	fd = own < 0 ? open(path, O_WRONLY | O_CLOEXEC) : fcntl(own, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

int create_stream(const char *path, FILE **out)
{
	int fd = open_output(path), error;

	if (fd < 0)
		return fd;
	*out = fdopen(fd, "w");
	if (*out)
		return 0;
	error = errno;
	close(fd);
	return -error;
}

const char *create_error(int error)
{
	return error == -EEXIST ? "it exists and is not a regular file" : strerror(-error);
}
