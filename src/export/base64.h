/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Base64 (RFC 4648, section 4), with padding and without line breaks. */
#ifndef EXPORT_BASE64_H
#define EXPORT_BASE64_H

#include <stdio.h>

/* Return: a stream that writes what it gets to @to, which stays open; fclose() writes the rest.  NULL when out of
 * memory. */
FILE *base64_stream(FILE *to);

#endif
