/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocators and interpreters that memprof does not know, recognised by what they leave in their
 * files, so that a refusal can name them. */
#ifndef INJECT_STRANGER_H
#define INJECT_STRANGER_H

#include <stdbool.h>
#include <sys/types.h>
#include "attach/maps.h"
#include "lib/err.h"

/* Return: which sanitizer's runtime defines @symbol ("AddressSanitizer"), NULL: none. */
const char *stranger_sanitizer(const char *symbol);

/* Does valgrind run the program of @pid?  It translates the program's code: not one of its
 * functions is executed. */
bool stranger_is_valgrind(pid_t pid, const struct maps *maps);

/* Appends to @err (NULL: nothing) what is recognised in @pid: "; it has the Go runtime (caddy)".
 * Return: whether something is. */
bool stranger_append(pid_t pid, struct mp_err *err);

#endif
