/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdio.h>

/* Text in XML 1.0: markup is escaped, what is no XML character becomes '?'. */
void svg_text(const char *s, FILE *out);

#endif
