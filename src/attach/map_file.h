/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files that are mapped into a target. */
#ifndef ATTACH_MAP_FILE_H
#define ATTACH_MAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "attach/maps.h"
#include "lib/check.h"

/* Opens the file of a map as the target sees it: through map_files, else by /proc/PID/root + path;
 * checks the inode.  Return: descriptor or -errno; -EAGAIN: another file is mapped there now. */
__must_check int map_open(pid_t pid, const struct map *map);

/* Does the file of @map hold these @n bytes where it is mapped to @addr?  false also if it cannot
 * be read. */
bool map_has(pid_t pid, const struct map *map, uint64_t addr, const void *bytes, size_t n);

/* Opens the file of a shared mapping read-write through map_files.  Return: descriptor or -errno.
 */
__must_check int map_open_block(pid_t pid, const struct map *map);

#endif
