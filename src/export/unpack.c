/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "formats/binaries.h"
#include "lib/hex.h"
#include "lib/intern.h"

#define FOLDER "binaries"

struct unpacking {
	int folder;
	struct binaries binaries;
	struct intern *used; /* paths used in the folder */
	struct unpack_result *result;
};

bool unpack_path(const char *path, char *out, size_t size)
{
	size_t n = 0;

	while (*path) {
		size_t length = strcspn(path, "/");

		if ((length == 2 && !memcmp(path, "..", 2)) || n + length + 2 > size)
			return false;
		if (length && !(length == 1 && *path == '.')) {
			if (n)
				out[n++] = '/';
			memcpy(out + n, path, length);
			n += length;
		}
		path += length;
		path += strspn(path, "/");
	}
	out[n] = 0;
	return n != 0;
}

/* Creates and opens the folder @name in @at; does not follow links.  Return: its descriptor, or a
 * negative errno. */
static int enter(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int create(int at, const char *name)
{
	struct stat st;
	int fd;

	if (!fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    (!S_ISREG(st.st_mode) || unlinkat(at, name, 0)))
		return S_ISREG(st.st_mode) ? -errno : -EEXIST;
	fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Creates the file @path and its folders.  @path is changed.  Return: a descriptor, or a negative
 * errno. */
static int create_below(int folder, char *path)
{
	char *name = path, *slash;
	int at = dup(folder), fd;

	while (at >= 0 && (slash = strchr(name, '/'))) {
		*slash = 0;
		fd = enter(at, name);
		close(at);
		at = fd;
		name = slash + 1;
	}
	if (at < 0)
		return at;
	fd = create(at, name);
	close(at);
	return fd;
}

static int write_all(void *ctx, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t put = write(*(int *)ctx, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ENOSPC;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

static void leave_out(struct unpacking *u, const struct binary *b, const char *why)
{
	binaries_left_out(u->result->left_out, sizeof(u->result->left_out), b->path, why);
}

static bool is_free(struct unpacking *u, const char *path)
{
	bool fresh = false;

	return intern_text(u->used, path, &fresh) && fresh;
}

/* Return: false if no path is available. */
static bool choose_path(struct unpacking *u, const struct binary *b, char *path, size_t size)
{
	size_t n;

	if (!unpack_path(b->path, path, size))
		return false;
	if (is_free(u, path))
		return true;
	n = strlen(path);
	if (n + 2u * b->build_id_len + 2 > size)
		return false;
	path[n++] = '.';
	hex_text(b->build_id, b->build_id_len, path + n);
	return is_free(u, path);
}

/* Return: 0, also if it was left out; or a negative errno: nothing more can be written. */
static int unpack(struct unpacking *u, const struct binary *b)
{
	char path[PATH_MAX];
	int fd, ret;

	if (b->wrong) {
		leave_out(u, b, b->wrong);
		return 0;
	}
	if (!choose_path(u, b, path, sizeof(path))) {
		leave_out(u, b, "no path for a file");
		return 0;
	}
	fd = create_below(u->folder, path);
	if (fd < 0) {
		leave_out(u, b, strerror(-fd));
		return fd == -ENOSPC || fd == -EDQUOT ? fd : 0;
	}
	ret = binaries_read(&u->binaries, b, write_all, &fd);
	if (close(fd) && !ret)
		ret = -errno;
	u->result->files += !ret;
	u->result->bytes += ret ? 0 : b->size;
	return ret;
}

static int unpack_all(struct unpacking *u, const char *dir, struct mp_err *err)
{
	int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	u->folder = top < 0 ? -errno : enter(top, FOLDER);
	if (top >= 0)
		close(top);
	if (u->folder < 0)
		return mp_fail(err, MP_EXIT_OUTPUT, u->folder, "cannot make the folder %s/%s: %s",
			       dir, FOLDER, strerror(-u->folder));
	for (size_t i = 0; !ret && i < u->binaries.list.n; i++)
		ret = unpack(u, &u->binaries.list.at[i]);
	close(u->folder);
	return ret ? mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot write to %s/%s: %s", dir, FOLDER,
			     strerror(-ret))
		   : 0;
}

int unpack_binaries(const char *recording, const char *dir, struct unpack_result *result,
		    struct mp_err *err)
{
	struct unpacking u = {.used = intern_new(), .result = result};
	int ret;

	*result = (struct unpack_result){0};
	ret = binaries_open(&u.binaries, recording, err);
	if (!u.used && !ret)
		ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	result->damaged = u.binaries.damaged;
	if (!ret && u.binaries.list.n)
		ret = unpack_all(&u, dir, err);
	binaries_close(&u.binaries);
	intern_free(u.used);
	return ret;
}
