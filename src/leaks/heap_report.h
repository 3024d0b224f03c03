/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What memprof heap reports of a process, from one snapshot: its live blocks by type, and its resident memory; or
 * what keeps how much. */
#ifndef LEAKS_HEAP_REPORT_H
#define LEAKS_HEAP_REPORT_H

#include "heaps/consistent.h"
#include "heaps/resident.h"
#include "leaks/growth/heap_types.h"
#include "leaks/retained/retained.h"

struct heap_report {
	struct consistent_census m; /* its snapshot has ended */
	struct heap_types types;
	struct resident resident;
	struct retained retained; /* instead of .types and .resident */
	struct mp_err end;	  /* .what is not empty: the copy could not be removed */
};

struct heap_report_options {
	const struct retained_options *retained; /* NULL: .types and .resident are taken */
	bool type_of;				 /* .types.type_of is wanted */
};

/**
 * heap_report_take() - stop a process for some milliseconds, and examine its heap
 * @r: filled; to be freed by heap_report_free() in any case
 * @plan: from snapshot_plan()
 * Return: 0 or -errno with @err.
 */
int heap_report_take(struct heap_report *r, struct target *t, const struct snapshot_plan *plan,
		     const struct heap_report_options *o, struct mp_err *err);
void heap_report_free(struct heap_report *r);

#endif
