/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The files that are mapped into a target. */
#ifndef ATTACH_PROC_MAP_FILE_H
#define ATTACH_PROC_MAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/proc/maps.h"
#include "lib/check.h"

enum { MAP_FILES_PATH = 80 };

/* Writes the path at which the kernel has the file that is mapped to @start to @end.  Opening it needs CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE; the path exists only while there is a mapping of exactly these addresses. */
void map_files_path(pid_t pid, uint64_t start, uint64_t end, char path[static MAP_FILES_PATH]);

/* Opens the file of a map as the target sees it: through map_files, else by /proc/PID/root + path;
 * checks the inode.  Return: descriptor or -errno; -EAGAIN: another file is mapped there now. */
__must_check int map_open(pid_t pid, const struct map *map);

/* As map_open() for a map that can be gone, and whose inode can be another one than in maps (on overlayfs, as the kernel reports it
 * in perf events): opens what is mapped there, if the inode is the same, else the file at its path.  @is_mapped: false: other
 * code is mapped there now; cleared if the file is not known to be the mapped one.  Return: descriptor or -errno. */
__must_check int map_open_late(pid_t pid, const struct map *map, bool *is_mapped);

/* Does the file of @map hold these @n bytes where it is mapped to @addr?  false also if it cannot
 * be read. */
bool map_has(pid_t pid, const struct map *map, uint64_t addr, const void *bytes, size_t n);

/* Opens the file of a shared mapping read-write through map_files.  Return: descriptor or -errno.
 */
__must_check int map_open_block(pid_t pid, const struct map *map);

#endif
