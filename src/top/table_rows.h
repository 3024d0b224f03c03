/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds all rows of a table (top/table.h), and computes what a row shows from sums. */
#ifndef TOP_TABLE_ROWS_H
#define TOP_TABLE_ROWS_H

#include <stdint.h>
#include "lib/vec.h"
#include "top/past.h"
#include "top/table.h"

/* Of the stacks of a row, or of rows. */
struct table_sums {
	struct past_sum now;
	struct past_sum first; /* at past_first(); as now if there is none */
	struct past_sum mark;  /* as now if there is none */
	uint64_t live_blocks;
	double variance_live;
	uint32_t stacks;
};

/* A row of which only what identifies it is filled: at, stack, tid, key. */
struct table_found {
	struct table_row row;
	struct table_sums sums;
	uint64_t most; /* live bytes of row.stack */
};

struct table_rows {
	VEC(struct table_found) at;
};

/* Finds the rows of a view without its filter, in no particular order.  @names: takes the texts
 * that frames of rows need beside those of the model.  Return: 0 or -ENOMEM, in both cases with @r
 * to be freed by table_rows_free(). */
int table_rows_find(struct model *m, const struct past *past, const struct table_view *v,
		    struct table_names *names, struct table_rows *r);
void table_rows_free(struct table_rows *r);

void table_sums_add(struct table_sums *sum, const struct table_sums *s);
/* Return: whether there is something live, or something was done over past_span() or since the
 * mark. */
bool table_sums_are_busy(const struct table_sums *s);
/* Fills the numbers of @row.  @span: seconds */
void table_sums_show(const struct table_sums *s, double span, bool sampled, struct table_row *row);

#endif
