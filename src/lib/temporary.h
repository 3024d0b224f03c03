/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Temporary directories, which are removed together with their files. */
#ifndef LIB_TEMPORARY_H
#define LIB_TEMPORARY_H

#include <stddef.h>
#include "lib/err.h"

/**
 * temporary_make() - make a directory of mode 0700 in $TMPDIR, or in /tmp
 * @name: what its name begins with
 * @dir: set to its path; to "" after an error
 *
 * Return: 0, or a negative errno with @err (MP_EXIT_OUTPUT).
 */
int temporary_make(const char *name, char *dir, size_t size, struct mp_err *err);
/* Removes the directory and its files; it has no directories.  "": nothing. */
void temporary_remove(const char *dir);

#endif
