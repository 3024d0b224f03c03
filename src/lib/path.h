/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LIB_PATH_H
#define LIB_PATH_H

#include <string.h>

/* Return: the last part of @path: "libc.so.6" of "/usr/lib/libc.so.6". */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
