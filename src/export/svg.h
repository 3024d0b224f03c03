/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the writers of SVG. */
#ifndef EXPORT_SVG_H
#define EXPORT_SVG_H

#include <stdio.h>

/* Writes text in XML 1.0: markup is escaped, invalid characters become '?'. */
void svg_text(const char *s, FILE *out);

#endif
