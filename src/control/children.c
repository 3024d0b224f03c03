/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/children.h"

void children_recorded(struct children *c, const struct child_recording *r)
{
	c->recorded++;
	c->allocations += r->allocations;
	c->mapped_bytes += r->mapped_bytes;
	/* Without memory for it the list is shorter; the sums are still right. */
	if (c->shown.n <= CHILDREN_SHOWN && vec_push(&c->shown, *r))
		return;
}

int children_refused(struct children *c, const struct mp_err *why)
{
	if (why->exit == MP_EXIT_NO_PROCESS || why->exit == MP_EXIT_NOT_USER) {
		c->ended++;
		return 0;
	}
	vec_for_each (&c->refused, r) {
		if (r->first.exit == why->exit) {
			r->count++;
			return 0;
		}
	}
	return vec_push(&c->refused, ((struct child_refusal){1, *why}));
}

void children_free(struct children *c)
{
	vec_free(&c->shown);
	vec_free(&c->refused);
}
