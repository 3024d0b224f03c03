/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes lists of single events, which allocations_collect() finds, as JSON or text. */
#ifndef EXPORT_LISTS_ENTRIES_H
#define EXPORT_LISTS_ENTRIES_H

#include <stdio.h>
#include "export/json_stack.h"
#include "export/lists/collect.h"
#include "lib/check.h"

/* What the functions of an entry_format write to. */
struct entries {
	struct model *m;
	const struct allocations *list;
	FILE *out;		   /* text */
	yajl_gen g;		   /* JSON */
	struct json_stacks stacks; /* the stacks that JSON refers to */
};

struct entry_format {
	const char *key;					     /* of the array in JSON */
	const char *noun;					     /* singular */
	const char *heading;					     /* line above the text */
	void (*json)(struct entries *e, const struct allocation *a); /* writes an object */
	void (*text)(struct entries *e,
		     const struct allocation *a); /* writes a line; its stack follows */
};

/**
 * entries_write() - write the part of a list that @v selects; reads the recording again
 * @total: set to the number of entries before skip and count
 *
 * Needs memory for about twice @v->skip + @v->count entries.
 *
 * Return: 0, or a negative errno with @err filled.
 */
__must_check int entries_write(struct model *m, const struct view *v, const struct entry_format *f,
			       FILE *out, uint64_t *total, struct mp_err *err);

#endif
