/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Confirms leaks by further snapshots: a leak must be in all of them, with the same bytes. */
#ifndef LEAKS_GROWTH_SIGHTINGS_H
#define LEAKS_GROWTH_SIGHTINGS_H

#include <stdint.h>
#include "leaks/graph.h"
#include "leaks/mark.h"

/* A leak in the form in which two snapshots are compared. */
struct sighting {
	uint64_t addr, size, hash;
};
struct sightings {
	VEC(struct sighting) list; /* by address */
};

/* Lists the direct leaks of @l, with a hash of their contents.  @seen: filled, for
 * sightings_confirm().  Return: 0 or -ENOMEM. */
int sightings_take(struct sightings *seen, const struct graph *g, const struct leaks *l,
		   struct image *img);
/* Drops from @l the leaks that the earlier snapshot did not have, or that were other blocks then.
 * Return: 0 or -ENOMEM. */
int sightings_confirm(struct leaks *l, const struct graph *g, const struct sightings *before,
		      const struct sightings *now);
void sightings_free(struct sightings *s);

#endif
