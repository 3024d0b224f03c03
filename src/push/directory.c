/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/directory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/vec.h"
#include "lib/write_all.h"

#define SUFFIX ".pb.gz"

struct profile {
	struct timespec written;
	uint64_t bytes;
	char name[NAME_MAX + 1];
};

struct profiles {
	VEC(struct profile) list;
	uint64_t bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct profile *p = a, *q = b;

	if (p->written.tv_sec != q->written.tv_sec)
		return p->written.tv_sec < q->written.tv_sec ? -1 : 1;
	return p->written.tv_nsec < q->written.tv_nsec ? -1
						       : p->written.tv_nsec > q->written.tv_nsec;
}

static bool is_profile(const char *name)
{
	size_t n = strlen(name), k = strlen(SUFFIX);

	return n > k && !strcmp(name + n - k, SUFFIX) && name[0] != '.';
}

static int list(int dir, struct profiles *p)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;

	if (!d) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while (!ret && (de = readdir(d))) {
		struct profile fresh;
		struct stat st;

		if (!is_profile(de->d_name) || fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		snprintf(fresh.name, sizeof(fresh.name), "%s", de->d_name);
		fresh.written = st.st_mtim;
		fresh.bytes = (uint64_t)st.st_size;
		p->bytes += fresh.bytes;
		ret = vec_push(&p->list, fresh);
	}
	closedir(d);
	if (p->list.n)
		qsort(p->list.at, p->list.n, sizeof(p->list.at[0]), by_time);
	return ret;
}

static int make_room(int dir, uint64_t n, uint64_t limit)
{
	struct profiles p = {0};
	int ret = n > limit ? -EFBIG : list(dir, &p);

	for (size_t i = 0; !ret && i < p.list.n && p.bytes + n > limit; i++) {
		unlinkat(dir, p.list.at[i].name, 0);
		p.bytes -= p.list.at[i].bytes;
	}
	vec_free(&p.list);
	return ret;
}

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
	ret = make_room(dir, n, limit);
	ret = ret ? ret : write_file(dir, file, bytes, n);
	close(dir);
	return ret;
}
