/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files that a target made for other programs to read, below its root directory. */
#ifndef ATTACH_PROC_ROOT_FILE_H
#define ATTACH_PROC_ROOT_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "lib/check.h"

/* Opens the root directory of a process: a descriptor that keeps leading there when the process has
 * ended.  Return: descriptor or -errno. */
__must_check int root_open(pid_t pid);

/**
 * root_file_open() - open a regular file for reading
 * @root: of root_open()
 * @path: absolute; of its parts, none is a symbolic link or ".."
 * @uid: the user that must own it, if root does not
 * @st: filled
 *
 * Opens only regular files and follows no link, because any user who can write to a folder of @path
 * can replace what is there.
 *
 * Return: descriptor; -ENOENT: there is none; -ELOOP: a symbolic link; -EINVAL: not a regular file;
 * -EPERM: another owner; or another -errno.
 */
__must_check int root_file_open(int root, const char *path, uint32_t uid, struct stat *st);

#endif
