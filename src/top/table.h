/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table that memprof top shows: rows made of a model (top/feed.h) and its past (top/past.h). */
#ifndef TOP_TABLE_H
#define TOP_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/err.h"
#include "lib/vec.h"
#include "model/names/frames.h"

struct model;
struct past;
struct pattern;

/* What a row is. */
enum table_by { TABLE_LINE, TABLE_FUNCTION, TABLE_LIBRARY, TABLE_THREAD, TABLE_STACK, TABLE_BYS };

enum table_sort {
	TABLE_LIVE,
	TABLE_BLOCKS,
	TABLE_GROWTH,
	TABLE_SINCE_MARK,
	TABLE_ALLOCATIONS, /* a second */
	TABLE_ALLOCATED,   /* bytes a second */
	TABLE_TEMPORARY,
	TABLE_NAME,
	TABLE_SORTS
};

struct table_row {
	struct frame at; /* as in struct place; of a thread function is its name or "thread TID" */
	uint32_t stack;	 /* the one of its stacks with the most live bytes; of a thread 0 */
	uint32_t tid;	 /* of a thread; else 0 */
	uint32_t stacks; /* number of stacks; of a thread 0 */
	uint64_t key;	 /* identifies the row in later tables: a hash of what it is by */
	uint64_t live_bytes, live_blocks;
	double live_error;			     /* standard error, bytes; 0: exact */
	double growth, allocations, allocated_bytes; /* a second, over past_span() */
	int64_t since_mark; /* growth in bytes since past_mark(); 0 if there is no mark */
	/* Share of the allocations over past_span() that were temporary, or of all if there were none;
	 * from 0 to 1; negative: not known, or there were no allocations at all */
	double temporary;
	uint64_t total_allocations, total_bytes; /* since the recording began */
};

struct table_view {
	enum table_by by;
	enum table_sort sort; /* descending, but TABLE_NAME */
	bool reverse;	      /* the other way round */
	/* Matched against function, mangled name, source and library; by TABLE_LIBRARY only against
	 * the library.  NULL: none */
	const struct pattern *filter;
	bool within; /* only stacks of the row @key in a table by @of; threads then have no rows */
	enum table_by of; /* not TABLE_THREAD */
	uint64_t key;
};

struct table_names {
	VEC(char *) at;
};

struct table {
	VEC(struct table_row) rows; /* sorted; frames: valid as long as the model and the table */
	struct table_row sum;	    /* of the rows; at.function is "" */
	struct table_names names;   /* in frames of rows */
	uint32_t left_out;	    /* rows that do not match the filter */
	bool has_live;		    /* false for threads, whose live bytes are not known */
};

/**
 * table_make() - make the table
 * @past: past_add() added the present state of @m
 * @t: to be freed by table_free(); an earlier one must have been
 *
 * Rows that have nothing live, did nothing over past_span() and have not changed since the mark are
 * left out; threads that did nothing, if there is a span.  Rows that are equal by the sort key are
 * sorted by live bytes, then by key, so that they do not jump.
 * Return: 0 or a negative errno with @err (the search of the filter exceeded its limit, out of
 * memory), with @t empty.
 */
int table_make(struct model *m, const struct past *past, const struct table_view *v,
	       struct table *t, struct mp_err *err);
void table_free(struct table *t);
/* Return: the index of the row with @key; the number of rows: there is none. */
uint32_t table_find(const struct table *t, uint64_t key);

#endif
