/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which package of this machine's distribution has the debug information of a file. */
#ifndef LIB_DEBUG_PACKAGE_H
#define LIB_DEBUG_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

struct package_query {
	const char *path;
	char owner[80]; /* set to the package that installed the file; "": none */
};

/* Finds the Debian packages that installed @n files, by dpkg-query, in some 200 ms.  Return: false if
 * this is no machine with dpkg. */
bool packages_find(struct package_query *q, size_t n);

/* Writes the name of the package with the debug information of @owner, by Debian's
 * convention (dh_strip(1): NAME-dbgsym, in the archive debian-debug), to @buf.  Return: @buf. */
const char *package_with_debug(const char *owner, char *buf, size_t size);

/* Return: whether this machine has RPM packages. */
bool packages_are_rpm(void);

#endif
