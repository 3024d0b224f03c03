/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/proc/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach/proc/procfs.h"

/* Since the map was read, its library can have been unloaded and another one loaded at exactly the
 * same addresses.  On some file systems (overlayfs) inode numbers in maps differ from those of
 * stat(). */
static bool is_replaced(pid_t pid, const struct map *map, int fd)
{
	const struct map *now;
	struct maps maps;
	struct stat st;
	bool is;

	if (!map->ino || (!fstat(fd, &st) && st.st_ino == map->ino))
		return false;
	if (maps_read(pid, &maps))
		return true;
	now = maps_find(&maps, map->start);
	is = !now || now->ino != map->ino;
	maps_free(&maps);
	return is;
}

void map_files_path(pid_t pid, uint64_t start, uint64_t end, char path[static MAP_FILES_PATH])
{
	snprintf(path, MAP_FILES_PATH, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, proc_of(pid),
		 start, end);
}

/* Opens the regular file at the path of @map.  O_NONBLOCK, because the target can have put a fifo there. */
static int open_by_path(pid_t pid, const struct map *map, struct stat *st)
{
	char path[PATH_MAX];
	int fd;

	if (map->path[0] != '/')
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/root%s", proc_of(pid), map->path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int map_open(pid_t pid, const struct map *map)
{
	char path[MAP_FILES_PATH];
	struct stat st = {0};
	int fd;

	map_files_path(pid, map->start, map->end, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (!is_replaced(pid, map, fd))
			return fd;
		close(fd);
		return -EAGAIN;
	}
	/* map_files needs a capability.  Without it the path must still lead to the same file. */
	fd = open_by_path(pid, map, &st);
	if (fd >= 0 && st.st_ino != map->ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int map_open_late(pid_t pid, const struct map *map, bool *is_mapped)
{
	char path[MAP_FILES_PATH];
	struct stat st = {0}, link;
	int fd;

	map_files_path(pid, map->start, map->end, path);
	fd = *is_mapped ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		/* Another file can have been mapped at exactly the same addresses at this moment. */
		if (!fstat(fd, &st) && st.st_ino == map->ino)
			return fd;
		close(fd);
		*is_mapped = false;
	}
	fd = open_by_path(pid, map, &st);
	*is_mapped &= fd >= 0 && st.st_ino == map->ino && !lstat(path, &link);
	return fd;
}

bool map_has(pid_t pid, const struct map *map, uint64_t addr, const void *bytes, size_t n)
{
	void *text = malloc(n);
	int fd = text ? map_open(pid, map) : -1;
	bool has = fd >= 0 &&
		   pread(fd, text, n, (off_t)(addr - map->start + map->offset)) == (ssize_t)n &&
		   !memcmp(text, bytes, n);

	if (fd >= 0)
		close(fd);
	free(text);
	return has;
}

int map_open_block(pid_t pid, const struct map *map)
{
	char path[MAP_FILES_PATH];
	int fd;

	map_files_path(pid, map->start, map->end, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
