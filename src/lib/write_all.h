/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LIB_WRITE_ALL_H
#define LIB_WRITE_ALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Writes @n bytes, also if that takes several calls.  Return: whether all were written; if not, errno says
 * why. */
static inline bool write_all(int fd, const void *buf, size_t n)
{
	const char *p = buf;

	while (n) {
		ssize_t did = write(fd, p, n);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return false;
		p += did;
		n -= (size_t)did;
	}
	return true;
}

#endif
