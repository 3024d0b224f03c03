/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/children.h"

#include <stdio.h>
#include "cmd/cmd.h"
#include "lib/human.h"
#include "lib/printable.h"

#define SHOWN 8 /* recordings that are listed one by one */

void children_recorded(struct children *c, const struct child_recording *r)
{
	c->recorded++;
	c->allocations += r->allocations;
	c->mapped_bytes += r->mapped_bytes;
	/* Without memory for it the list is shorter; the sums are still right. */
	if (c->shown.n <= SHOWN && vec_push(&c->shown, *r))
		return;
}

void children_refused(struct children *c, const struct mp_err *why)
{
	if (why->exit == MP_EXIT_NO_PROCESS || why->exit == MP_EXIT_NOT_USER) {
		c->ended++;
		return;
	}
	vec_for_each (&c->refused, r) {
		if (r->first.exit == why->exit) {
			r->count++;
			return;
		}
	}
	if (vec_push(&c->refused, ((struct child_refusal){1, *why})))
		fprintf(stderr, "memprof: %s\n", printable(why->what));
}

void children_print(const struct children *c, const char *event)
{
	uint64_t refused = 0;

	vec_for_each (&c->refused, r)
		refused += r->count;
	if (!c->recorded && !c->ended && !c->unasked && !refused)
		return;
	printf("followed: %s process%s recorded (%s %s%s", thousands(c->recorded),
	       c->recorded == 1 ? "" : "es", thousands(c->allocations), event,
	       plural(c->allocations));
	if (c->mapped_bytes)
		printf("; %s mapped by the programs themselves, not by malloc",
		       human(c->mapped_bytes));
	putchar(')');
	if (c->ended)
		printf(", %s ended before memprof was attached", thousands(c->ended));
	if (c->unasked)
		printf(", %s not yet attached to when the recording ended", thousands(c->unasked));
	if (refused)
		printf(", %s refused", thousands(refused));
	putchar('\n');
	vec_for_each (&c->refused, r) {
		printf("  refused: %s", printable(r->first.what));
		if (r->count > 1)
			printf(" (and %s for the same reason)", thousands(r->count - 1));
		putchar('\n');
	}
	for (size_t i = 0; c->recorded <= SHOWN && i < c->shown.n; i++)
		printf("  process %d: %s %s%s in %s\n", c->shown.at[i].pid,
		       thousands(c->shown.at[i].allocations), event,
		       plural(c->shown.at[i].allocations), printable(c->shown.at[i].path));
}

void children_free(struct children *c)
{
	vec_free(&c->shown);
	vec_free(&c->refused);
}
