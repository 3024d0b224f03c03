/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The query of a URL: names and values, decoded.  It comes from the network, so nothing is assumed
 * of it. */
#ifndef SERVER_QUERY_H
#define SERVER_QUERY_H

#include <stdbool.h>
#include <stdio.h>
#include "lib/err.h"
#include "lib/vec.h"

#define QUERY_MOST_BYTES 16384u
#define QUERY_MOST_PAIRS 256u

struct query_pair {
	const char *name, *value; /* value: "" if there is no '=' */
};

struct query {
	char *text; /* owns the texts of the pairs */
	VEC(struct query_pair) pairs;
};

/**
 * query_parse() - split and decode a query (application/x-www-form-urlencoded)
 * @text: without the '?'; NULL: empty
 *
 * Return: 0 with @q filled, to be freed by query_free(); or with @err -EINVAL (a NUL, too many
 * parameters), -ENAMETOOLONG or -ENOMEM, with nothing to be freed.
 */
int query_parse(const char *text, struct query *q, struct mp_err *err);
void query_free(struct query *q);

/* Decodes %XX in place; @in_query: '+' is a blank, and a '%' without two hexadecimal digits is kept, as
 * in bytehound's "group_leaked_allocations_min=50%&count=3".  Return: 0, or -EINVAL: a NUL, or
 * another bad %XX. */
int percent_decode(char *text, bool in_query);

/* Writes what percent_decode() turns into @text. */
void percent_encode(const char *text, FILE *out);

#endif
