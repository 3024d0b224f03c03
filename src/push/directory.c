/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/directory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/write_all.h"
#include "push/files.h"

#define SUFFIX ".pb.gz"

/* The name of a process can have any character. */
static void file_name(char *name, size_t size, const char *of, int pid, uint64_t unix_ns)
{
	const time_t s = (time_t)(unix_ns / 1000000000u);
	char when[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
	snprintf(name, size, "%.64s-%d-%s.%03uZ" SUFFIX, of, pid, when,
		 (unsigned int)(unix_ns / 1000000u % 1000));
	for (char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			*c = '_';
	}
	if (*name == '.')
		*name = '_';
}

static int write_file(int dir, const char *name, const void *bytes, size_t n)
{
	char temporary[NAME_MAX + 1];
	int fd, ret = 0;

	snprintf(temporary, sizeof(temporary), ".%.240s.new", name);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (!write_all(fd, bytes, n))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(dir, temporary, dir, name))
		ret = -errno;
	if (ret)
		unlinkat(dir, temporary, 0);
	return ret;
}

int directory_put(const char *path, const char *name, int pid, uint64_t unix_ns, const void *bytes,
		  size_t n, uint64_t limit)
{
	char file[NAME_MAX + 1];
	int dir, ret;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	file_name(file, sizeof(file), name, pid, unix_ns);
	ret = files_make_room(dir, SUFFIX, files_by_time, n, limit, NULL);
	ret = ret ? ret : write_file(dir, file, bytes, n);
	close(dir);
	return ret;
}
