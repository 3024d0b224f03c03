/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/hex.h"

#define LIST	   ".memprof-gather" /* a line for each file: id, name */
#define SAME_NAMES 1000u	     /* files whose names differ only in a number */
#define NAME_ROOM  (WIRE_NAME + 16u)

static bool is_plain(uint8_t c)
{
	return (c < 128 && isalnum(c)) || (c && strchr(".-_+@", c));
}

void store_clean_name(const uint8_t *name, size_t n, char *clean)
{
	const uint8_t *slash = memrchr(name, '/', n), *end = name + n;
	size_t k = 0;

	for (const uint8_t *p = slash ? slash + 1 : name; p < end && k < WIRE_NAME; p++)
		clean[k++] = is_plain(*p) ? (char)*p : '_';
	clean[k] = 0;
	if (!k)
		strcpy(clean, "recording.memprof");
	else if (*clean == '.')
		*clean = '_';
}

static struct stored *find_stored(const struct store *s, const uint8_t id[WIRE_ID])
{
	vec_for_each (&s->at, it) {
		if (!memcmp((*it)->id, id, WIRE_ID))
			return *it;
	}
	return NULL;
}

static struct stored *add_stored(struct store *s, const uint8_t id[WIRE_ID], const char *name)
{
	struct stored *f = calloc(1, sizeof(*f));

	if (f) {
		memcpy(f->id, id, WIRE_ID);
		f->fd = -1;
		f->name = strdup(name);
		if (f->name && !vec_push(&s->at, f))
			return f;
		free(f->name);
		free(f);
	}
	return NULL;
}

/* Adds what a line of the list says, if the file is there.  Return: 0 or -ENOMEM. */
static int add_line(struct store *s, const char *line)
{
	uint8_t id[WIRE_ID];
	char name[NAME_ROOM];
	struct stat st;

	for (size_t i = 0; i < WIRE_ID; i++) {
		unsigned int byte;

		if (!isxdigit((unsigned char)line[2 * i]) ||
		    sscanf(line + 2 * i, "%2x", &byte) != 1)
			return 0;
		id[i] = (uint8_t)byte;
	}
	if (sscanf(line + 2 * (size_t)WIRE_ID, " %215[A-Za-z0-9._+@-]", name) != 1 ||
	    fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    find_stored(s, id))
		return 0;
	return add_stored(s, id, name) ? 0 : -ENOMEM;
}

static int put_line(const struct store *s, const struct stored *f)
{
	char id[2 * WIRE_ID + 1];

	hex_text(f->id, WIRE_ID, id);
	return dprintf(s->list, "%s %s\n", id, f->name) < 0 ? -errno : 0;
}

/* Reads the list, and leaves out what is not there any more.  Return: 0 or a negative errno. */
static int read_list(struct store *s)
{
	char line[NAME_ROOM + 64];
	int copy = fcntl(s->list, F_DUPFD_CLOEXEC, 0), ret = 0;
	FILE *f = copy < 0 ? NULL : fdopen(copy, "r");

	if (!f)
		return -errno;
	while (!ret && fgets(line, sizeof(line), f))
		ret = add_line(s, line);
	fclose(f);
	if (!ret && ftruncate(s->list, 0))
		ret = -errno;
	vec_for_each (&s->at, it)
		ret = ret ? ret : put_line(s, *it);
	return ret;
}

static int open_list(struct store *s)
{
	s->list = openat(s->dir, LIST,
			 O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (s->list < 0 || flock(s->list, LOCK_EX | LOCK_NB))
		return -errno;
	return read_list(s);
}

int store_open(const char *path, struct store *s, struct mp_err *err)
{
	int ret;

	*s = (struct store){.dir = -1, .list = -1};
	if (mkdir(path, 0700) && errno != EEXIST)
		return mp_fail(err, MP_EXIT_OUTPUT, -errno, "cannot create the folder %.200s: %s",
			       path, strerror(errno));
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = s->dir < 0 ? -errno : open_list(s);
	if (!ret)
		return 0;
	store_close(s);
	return mp_fail(err, MP_EXIT_OUTPUT, ret, "cannot use the folder %.200s: %s", path,
		       ret == -EWOULDBLOCK ? "another memprof gather uses it" : strerror(-ret));
}

static void stored_free(struct stored *f)
{
	store_pause(f);
	free(f->name);
	free(f);
}

void store_close(struct store *s)
{
	vec_for_each (&s->at, it)
		stored_free(*it);
	vec_free(&s->at);
	if (s->list >= 0)
		close(s->list);
	if (s->dir >= 0)
		close(s->dir);
	s->dir = s->list = -1;
}

/* Creates a file that is called as @name, or nearly so.  @used: set to its name.  Return: a descriptor, or a
 * negative errno. */
static int create(const struct store *s, const char *name, char used[NAME_ROOM])
{
	const char *dot = strrchr(name, '.'), *end = dot && dot != name ? dot : name + strlen(name);

	snprintf(used, NAME_ROOM, "%s", name);
	for (uint32_t i = 2; i < SAME_NAMES; i++) {
		int fd =
		    openat(s->dir, used,
			   O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
		snprintf(used, NAME_ROOM, "%.*s-%u%s", (int)(end - name), name, i, end);
	}
	return -EEXIST;
}

static int begin_new(struct store *s, const uint8_t id[WIRE_ID], const char *name,
		     struct stored **file)
{
	char used[NAME_ROOM];
	int fd = create(s, name, used), ret;

	if (fd < 0)
		return fd;
	*file = add_stored(s, id, used);
	ret = *file ? put_line(s, *file) : -ENOMEM;
	if (*file)
		(*file)->fd = fd;
	else
		close(fd);
	if (ret && *file)
		store_remove(s, *file);
	else if (ret)
		unlinkat(s->dir, used, 0);
	return ret;
}

static int open_again(const struct store *s, struct stored *f)
{
	struct stat st;
	int ret;

	f->fd = openat(s->dir, f->name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	if (!fstat(f->fd, &st)) {
		f->bytes = (uint64_t)st.st_size;
		return 0;
	}
	ret = -errno;
	store_pause(f);
	return ret;
}

int store_begin(struct store *s, const uint8_t id[WIRE_ID], const char *name, uint64_t offset,
		struct stored **file, uint64_t *has)
{
	int ret = 0;

	*has = 0;
	*file = find_stored(s, id);
	if (*file && (ret = open_again(s, *file)) == -ENOENT) {
		store_remove(s, *file); /* the file was deleted */
		*file = NULL;
		ret = 0;
	}
	if (!ret && !*file)
		ret = offset ? -ESTALE : begin_new(s, id, name, file);
	if (ret)
		return ret;
	*has = (*file)->bytes;
	if (*has >= offset)
		return 0;
	store_pause(*file);
	return -ESTALE;
}

int store_append(struct stored *f, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n) {
		ssize_t did = write(f->fd, p, n);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return did ? -errno : -ENOSPC;
		f->bytes += (uint64_t)did;
		p += did;
		n -= (size_t)did;
	}
	return 0;
}

int store_complete(struct store *s, struct stored *f)
{
	if (fsync(f->fd) || fsync(s->dir))
		return -errno;
	f->complete = true;
	return 0;
}

void store_pause(struct stored *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void store_remove(struct store *s, struct stored *f)
{
	unlinkat(s->dir, f->name, 0);
	vec_for_each (&s->at, it) {
		if (*it == f) {
			*it = s->at.at[--s->at.n];
			break;
		}
	}
	stored_free(f);
}
