/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a report goes: a file, compressed as its name says, or standard output. */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include "lib/err.h"

/**
 * output_open() - a stream to write a report to
 * @path: NULL or "-": standard output; names that end in .gz and .zst are compressed
 * @gzip: compress with gzip whatever the name
 *
 * Return: the stream, closed by output_close(), or NULL with @err filled.
 */
FILE *output_open(const char *path, bool gzip, struct mp_err *err);

/* Also flushes.  Return: 0, or the first error of writing as a negative errno. */
int output_close(FILE *out);

#endif
