/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdio.h>

/* Writes text in XML 1.0: markup is escaped, invalid characters become '?'. */
void svg_text(const char *s, FILE *out);

#endif
