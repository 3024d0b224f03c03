/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The heap over time as a plot (SVG): live bytes and resident memory, live blocks, rates. */
#ifndef EXPORT_PLOT_H
#define EXPORT_PLOT_H

#include <stdio.h>

struct model;

/* Return: 0 or a negative errno. */
int plot_write(const struct model *m, FILE *out);

#endif
