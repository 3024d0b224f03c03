/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Saves a look as JSON (doc/heap-look.schema.json), and reads it. */
#ifndef LEAKS_GROWTH_LOOK_FILE_H
#define LEAKS_GROWTH_LOOK_FILE_H

#include <stdio.h>
#include "leaks/growth/look.h"

#define LOOK_FILE_MAX (64u << 20) /* bytes of a file that is read, or written */

/* Return: 0; -EFBIG: look_read() would refuse it; or another -errno. */
int look_write(const struct look *l, FILE *out);

/**
 * look_parse() - make a look of the text of a file
 * @l: filled; call look_free() in any case
 * @text: NUL-terminated; it can come from anywhere
 * @path: for messages
 * Checks that the sums agree with each other.
 * Return: 0, or -EINVAL or -ENOMEM with @err.
 */
int look_parse(struct look *l, const char *text, const char *path, struct mp_err *err);
/* As look_parse(), for a file.  Return: also another -errno, with @err. */
int look_read(struct look *l, const char *path, struct mp_err *err);

#endif
