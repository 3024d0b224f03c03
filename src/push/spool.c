/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/deadline.h"
#include "lib/write_all.h"
#include "push/files.h"

/* A name is the time in ns, the process and a number; sorted by name the oldest is the first. */
#define SUFFIX	   ".push"
#define INCOMPLETE ".new" /* appended while a file is written, and locked */

/* Removes what processes that were killed did not complete. */
static void remove_incomplete(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), file;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;

	while (d && (de = readdir(d))) {
		if (!files_has_suffix(de->d_name, SUFFIX INCOMPLETE))
			continue;
		file = openat(dir, de->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB))
			unlinkat(dir, de->d_name, 0);
		if (file >= 0)
			close(file);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

int spool_open(struct spool *s, const char *path, uint64_t limit, struct mp_err *err)
{
	*s = (struct spool){.dir = -1, .limit = limit};
	if (mkdir(path, 0700) && errno != EEXIST)
		return mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot make the directory %.200s: %s",
			       path, strerror(errno));
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir < 0 || faccessat(s->dir, ".", W_OK | X_OK, AT_EACCESS))
		return mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot use the directory %.200s: %s",
			       path, strerror(errno));
	remove_incomplete(s->dir);
	return 0;
}

void spool_close(struct spool *s)
{
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
}

static int list(const struct spool *s, struct files *f)
{
	return files_list(s->dir, SUFFIX, files_by_name, f);
}

static int write_file(const struct spool *s, const char *name, const char *query, const void *body,
		      size_t n)
{
	int fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int ret = 0;

	if (fd < 0)
		return -errno;
	(void)flock(fd, LOCK_EX);
	if (!write_all(fd, query, strlen(query)) || !write_all(fd, "\n", 1) ||
	    !write_all(fd, body, n))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	return ret;
}

int spool_put(struct spool *s, const char *query, const void *body, size_t n)
{
	char name[64], temporary[72];
	int ret = files_make_room(s->dir, SUFFIX, files_by_name, n + strlen(query) + 1, s->limit,
				  &s->dropped);

	snprintf(name, sizeof(name), "%020llu-%d-%u" SUFFIX,
		 (unsigned long long)clock_read_ns(CLOCK_REALTIME), getpid(), s->number++);
	snprintf(temporary, sizeof(temporary), "%s" INCOMPLETE, name);
	if (!ret)
		ret = write_file(s, temporary, query, body, n);
	/* A file gets its name only when it is complete. */
	if (!ret && renameat(s->dir, temporary, s->dir, name))
		ret = -errno;
	if (ret) {
		unlinkat(s->dir, temporary, 0);
		s->dropped++;
	}
	return ret;
}

static int read_file(int fd, struct spooled *r)
{
	struct stat st;
	char *line, *text;
	size_t n = 0;

	if (fstat(fd, &st))
		return -errno;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, text + n, (size_t)st.st_size - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	line = memchr(text, '\n', n);
	if (!line) {
		free(text);
		return -EBADMSG;
	}
	*line = 0;
	r->query = text;
	r->body = line + 1;
	r->n = n - (size_t)(r->body - text);
	return 0;
}

/* Return: 1 with @r; 0: another process is sending it, or it is gone; or a negative errno. */
static int take_file(const struct spool *s, const char *name, struct spooled *r)
{
	int fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), ret;
	struct stat st;

	*r = (struct spooled){.fd = fd};
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	/* The process that had the lock may have removed the file. */
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) || !st.st_nlink) {
		close(fd);
		return 0;
	}
	ret = read_file(fd, r);
	if (ret) {
		/* A file that cannot be read would be in the way of all others. */
		if (ret == -EBADMSG)
			unlinkat(s->dir, name, 0);
		close(fd);
		return ret == -EBADMSG ? 0 : ret;
	}
	snprintf(r->name, sizeof(r->name), "%s", name);
	return 1;
}

int spool_take(struct spool *s, struct spooled *r)
{
	struct files f = {0};
	int ret = list(s, &f);

	for (size_t i = 0; !ret && i < f.list.n; i++)
		ret = take_file(s, f.list.at[i].name, r);
	vec_free(&f.list);
	return ret;
}

void spool_done(struct spool *s, struct spooled *r, bool keep)
{
	if (!keep)
		unlinkat(s->dir, r->name, 0);
	close(r->fd);
	free(r->query);
}

uint32_t spool_count(struct spool *s)
{
	struct files f = {0};
	uint32_t n = list(s, &f) ? 0 : (uint32_t)f.list.n;

	vec_free(&f.list);
	return n;
}
