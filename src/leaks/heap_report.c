/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/heap_report.h"

#include <errno.h>
#include <string.h>

#define STOP_MS 5000

/* Reads all that is needed from the image while it exists. */
static int examine(struct heap_report *r, struct resident_stacks *stacks,
		   const struct heap_report_options *o, struct mp_err *err)
{
	struct image *img = &r->m.snapshot.image;

	if (o->retained)
		return retained_take(&r->retained, img, &r->m.census, o->retained, err);
	if (resident_stacks(stacks, img))
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "no memory for the list of stacks");
	return heap_types_take(&r->types, img, &r->m.census, o->type_of, err);
}

int heap_report_take(struct heap_report *r, struct target *t, const struct snapshot_plan *plan,
		     const struct heap_report_options *o, struct mp_err *err)
{
	struct resident_stacks stacks = {0};
	int ret, walked;

	memset(r, 0, sizeof(*r));
	ret = consistent_take(&r->m, t, plan, STOP_MS, &walked, err);
	if (ret)
		return target_ask_again(t, ret, err);
	ret = walked;
	if (!ret)
		ret = examine(r, &stacks, o, err);
	/* A process that has ended keeps no copy. */
	if (snapshot_end(&r->m.snapshot, &r->end) == -ESRCH)
		r->end.what[0] = 0;
	if (!ret && !o->retained)
		ret = resident_take(&r->resident, t->pid, &stacks, &r->m.census, err);
	vec_free(&stacks.sp);
	return ret ? target_ask_again(t, ret, err) : 0;
}

void heap_report_free(struct heap_report *r)
{
	heap_types_free(&r->types);
	retained_free(&r->retained);
	census_free(&r->m.census);
}
