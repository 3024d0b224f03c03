/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "top/columns.h"

#define SITE  30 /* columns that the name must have, beside what a small terminal shows */
#define ROOMY 48 /* and beside what only a wide one shows */

#define ONLY_WIDE 5

static const struct {
	const char *title;
	uint32_t width;
} kind[COLUMN_KINDS] = {
    [COLUMN_LIVE] = {"LIVE", 10},
    [COLUMN_ERROR] = {"+-", 9},
    [COLUMN_BLOCKS] = {"BLOCKS", 9},
    [COLUMN_GROWTH] = {"GROWTH/s", 11},
    [COLUMN_SINCE_MARK] = {"SINCE MARK", 11},
    [COLUMN_ALLOCATIONS] = {"ALLOC/s", 9},
    [COLUMN_ALLOCATED] = {"BYTES/s", 10},
    [COLUMN_TEMPORARY] = {"TEMP", 5},
    [COLUMN_TOTAL] = {"ALLOCATIONS", 13},
    [COLUMN_STACKS] = {"STACKS", 7},
    [COLUMN_SITE] = {"", SITE},
    [COLUMN_SOURCE] = {"SOURCE", 36},
    [COLUMN_LIBRARY] = {"LIBRARY", 20},
};

const char *columns_title(enum column what, enum table_by by)
{
	static const char *const of[TABLE_BYS] = {"SITE", "FUNCTION", "LIBRARY", "THREAD", "STACK"};

	return what == COLUMN_SITE ? of[by] : kind[what].title;
}

enum column columns_sorted(enum table_sort sort)
{
	static const enum column of[TABLE_SORTS] = {
	    COLUMN_LIVE,	COLUMN_BLOCKS,	  COLUMN_GROWTH,    COLUMN_SINCE_MARK,
	    COLUMN_ALLOCATIONS, COLUMN_ALLOCATED, COLUMN_TEMPORARY, COLUMN_SITE};

	return of[sort];
}

/* Do rows of this kind have something in the column? */
static bool suits(enum column what, const struct columns_for *f)
{
	switch (what) {
	case COLUMN_ERROR:
		return f->estimated && f->by != TABLE_THREAD;
	case COLUMN_STACKS:
		return f->by != TABLE_STACK && f->by != TABLE_THREAD;
	case COLUMN_SOURCE:
		return f->by == TABLE_LINE;
	case COLUMN_LIBRARY:
		return f->by == TABLE_LINE || f->by == TABLE_FUNCTION;
	default:
		return true;
	}
}

static uint32_t used(const bool *shown)
{
	uint32_t sum = 0;

	for (int i = 0; i < COLUMN_KINDS; i++) {
		if (shown[i] && i != COLUMN_SITE)
			sum += kind[i].width + 1;
	}
	return sum;
}

/* Adds columns from the most to the least important one, until one has no room. */
static void add_columns(const struct columns_for *f, uint32_t width, bool *shown)
{
	const enum column order[] = {f->marked ? COLUMN_SINCE_MARK : COLUMN_GROWTH,
				     COLUMN_ALLOCATIONS,
				     f->marked ? COLUMN_GROWTH : COLUMN_TEMPORARY,
				     f->marked ? COLUMN_TEMPORARY : COLUMN_BLOCKS,
				     f->marked ? COLUMN_BLOCKS : COLUMN_SINCE_MARK,
				     /* from ONLY_WIDE on */
				     COLUMN_ERROR, COLUMN_ALLOCATED, COLUMN_STACKS, COLUMN_SOURCE,
				     COLUMN_LIBRARY, COLUMN_TOTAL};

	for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		uint32_t least = i >= ONLY_WIDE		? ROOMY
				 : width / 5 * 2 < SITE ? width / 5 * 2
							: SITE;

		if (shown[order[i]] || !suits(order[i], f))
			continue;
		if (used(shown) + kind[order[i]].width + 1 + least > width)
			return;
		shown[order[i]] = true;
	}
}

void columns_choose(const struct columns_for *f, uint32_t width, struct columns *c)
{
	bool shown[COLUMN_KINDS] = {[COLUMN_LIVE] = true, [COLUMN_SITE] = true};
	uint32_t from = 0, rest, more;

	shown[columns_sorted(f->sort)] = true;
	add_columns(f, width, shown);
	rest = width > used(shown) ? width - used(shown) : 0;
	/* Sources, which have folders, and sites share what is not needed. */
	more = shown[COLUMN_SOURCE] ? (rest - ROOMY) / 3 : 0;
	*c = (struct columns){0};
	for (int i = 0; i < COLUMN_KINDS; i++) {
		uint32_t w = i == COLUMN_SITE	  ? rest - more
			     : i == COLUMN_SOURCE ? kind[i].width + more
						  : kind[i].width;

		if (!shown[i])
			continue;
		c->at[c->n].what = (enum column)i;
		c->at[c->n].from = from;
		c->at[c->n++].width = w;
		from += w + 1;
	}
}
