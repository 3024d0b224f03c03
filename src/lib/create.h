/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates output files.  They contain data from the memory of a process, so only their owner can
 * read them. */
#ifndef LIB_CREATE_H
#define LIB_CREATE_H

#include <stdio.h>

/**
 * create_file() - create @path for writing
 *
 * The mode is 0600.  An existing regular file is replaced.  A symbolic link is not followed, and a
 * fifo, device or directory is not opened, so that another user with write access to the directory
 * (/tmp) cannot get the data or make memprof overwrite another file.
 * Return: a descriptor with O_CLOEXEC, or a negative errno: -EEXIST: @path exists and is not a
 * regular file; -EISDIR: it is a directory.
 */
int create_file(const char *path);

/* As create_file(), but opens a stream.  Also permitted are /dev/null and the process's own
 * descriptors (/dev/stdout, /dev/stderr, /dev/fd/N).  Return: 0, or a negative errno as
 * create_file(). */
int create_stream(const char *path, FILE **out);

/* Return: the message for an errno of these functions. */
const char *create_error(int error);

#endif
