/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The page that shows a recording in a browser (web/): as the server sends it, and as a file of its own with the
 * recording's sums in it.
 *
 * The data of a file replace a comment in the page: {"version": 1, "answers": {NAME: ANSWER, ...}} with the
 * answers of the server's endpoints of these names (doc/rest.md), compressed by gzip, in base64.
 */
#ifndef EXPORT_HTML_H
#define EXPORT_HTML_H

#include <stddef.h>
#include <stdio.h>
#include "lib/err.h"

struct model;

/* Return: the page without data, @size bytes; NULL: this memprof was built without it. */
const char *html_page(size_t *size);

/* Return: 0, or -ENOSYS with @err if this memprof was built without the page. */
int html_check(struct mp_err *err);

/* Writes the page with the model, whose recording must be of allocations.  Return: 0, or a negative errno with @err;
 * -ENOSYS as html_check(). */
int html_write(struct model *m, FILE *out, struct mp_err *err);

#endif
