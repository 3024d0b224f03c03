/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A directory of profiles by time. */
#ifndef PUSH_DIRECTORY_H
#define PUSH_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

/**
 * directory_put() - write a file, complete or not at all
 * @name: of the process, part of the file's name; @unix_ns: the window's start
 * @limit: the oldest profiles in the directory are removed until all have at most so many bytes
 *
 * The name is NAME-PID-YYYYMMDDTHHMMSS.mmmZ.pb.gz.  Return: 0 or a negative errno.
 */
int directory_put(const char *path, const char *name, int pid, uint64_t unix_ns, const void *bytes,
		  size_t n, uint64_t limit);

#endif
