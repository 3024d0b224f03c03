/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocators and interpreters that memprof does not support.  They are recognized by traces in
 * their files, so that an error message can name them. */
#ifndef INJECT_STRANGER_H
#define INJECT_STRANGER_H

#include <stdbool.h>
#include <sys/types.h>
#include "attach/proc/maps.h"
#include "lib/err.h"

/* Return: the name of the sanitizer whose runtime defines @symbol ("AddressSanitizer"), or NULL. */
const char *stranger_sanitizer(const char *symbol);

/* Does valgrind run the program of @pid?  Valgrind translates the program's code, so none of the
 * program's functions is ever executed. */
bool stranger_is_valgrind(pid_t pid, const struct maps *maps);

/* Appends to @err (NULL: nothing) what is recognized in @pid: "; it has the Go runtime (caddy)".
 * Return: whether anything is. */
bool stranger_append(pid_t pid, struct mp_err *err);

#endif
