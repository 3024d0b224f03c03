/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files that memprof writes hold what was in the memory of a process: for their owner only. */
#ifndef LIB_CREATE_H
#define LIB_CREATE_H

#include <stdio.h>

/**
 * create_file() - open @path to be written from its start
 *
 * Creates it with mode 0600, whatever the umask.  A regular file that is there is replaced; a link
 * is not followed, and a fifo, device or folder not opened, so that nobody else who may write to
 * the folder (/tmp) gets the data, or has another file overwritten.
 * Return: a descriptor with O_CLOEXEC, or a negative errno: -EEXIST where something else than a
 * regular file has the name, -EISDIR.
 */
int create_file(const char *path);

/* As a stream.  Allowed are also /dev/null and the process's own descriptors (/dev/stdout,
 * /dev/stderr, /dev/fd/N).  Return: 0, or a negative errno as create_file(). */
int create_stream(const char *path, FILE **out);

/* The text of such an errno. */
const char *create_error(int error);

#endif
