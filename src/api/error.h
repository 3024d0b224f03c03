/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors of the library, made from those of its parts. */
#ifndef API_ERROR_H
#define API_ERROR_H

#include "api/memprof.h"
#include "lib/err.h"

/* Fills @out, which can be NULL.  Return: the code. */
int api_error(struct memprof_error *out, const struct mp_err *err);
/* As api_error(), with a text of its own.  @ret: a negative errno, or 0. */
int api_fail(struct memprof_error *out, int code, int ret, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
