/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The filters under bytehound's names and with its meanings; those of memprof that differ begin with
 * "memprof_" (doc/rest.md). */
#ifndef SERVER_REST_FILTER_H
#define SERVER_REST_FILTER_H

#include <stdbool.h>
#include "lib/err.h"

struct filter;

/* Return: whether @name is the name of a filter. */
bool rest_filter_is(const char *name);
/* Adds a condition.  @name: one for which rest_filter_is() is true.  Return: as filter_set(); the
 * message begins with @name. */
int rest_filter_set(struct filter *f, const char *name, const char *value, struct mp_err *err);

#endif
