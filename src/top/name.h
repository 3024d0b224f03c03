/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the view names rows and frames. */
#ifndef TOP_NAME_H
#define TOP_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include "top/fit.h"
#include "top/table.h"

struct model;

/**
 * name_row() - name a row in @columns
 * @source: also name the source line of a row by line
 *
 * A stack is named by its frames from the site on, or, @within a table of a place, by the callers of
 * that; before them by the function of a library that the site called, if that says more than that
 * memory was allocated.  Return: @buf.
 */
const char *name_row(struct model *m, const struct table_row *row, enum table_by by, bool within,
		     bool source, uint32_t columns, char buf[FIT_SIZE]);
/* Names "file.c:12", or the address in the library, or nothing.  @folders: with the folders of the file.
 * Return: @buf. */
const char *name_source(const struct frame *f, bool folders, char buf[FIT_SIZE]);

#endif
