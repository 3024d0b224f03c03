/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which columns of the table fit a terminal, and where they are. */
#ifndef TOP_COLUMNS_H
#define TOP_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>
#include "top/table.h"

/* In the order in which they are shown. */
enum column {
	COLUMN_LIVE,
	COLUMN_ERROR,
	COLUMN_BLOCKS,
	COLUMN_GROWTH,
	COLUMN_SINCE_MARK,
	COLUMN_ALLOCATIONS,
	COLUMN_ALLOCATED,
	COLUMN_TEMPORARY,
	COLUMN_TOTAL,
	COLUMN_STACKS,
	COLUMN_SITE,
	COLUMN_SOURCE,
	COLUMN_LIBRARY,
	COLUMN_KINDS
};

/* What the columns are for. */
struct columns_for {
	enum table_by by;
	enum table_sort sort; /* its column is there even if there is little room */
	bool marked;	      /* there is a mark to count from */
	bool estimated;	      /* live bytes have a standard error */
};

struct columns {
	struct {
		enum column what;
		uint32_t from, width; /* on the screen */
	} at[COLUMN_KINDS];
	uint32_t n;
};

/* @width: of the screen.  There is a blank between two columns. */
void columns_choose(const struct columns_for *f, uint32_t width, struct columns *c);
/* Return: the column's title; of COLUMN_SITE that of rows by @by. */
const char *columns_title(enum column what, enum table_by by);
/* Return: the column that a table is sorted by. */
enum column columns_sorted(enum table_sort sort);

#endif
