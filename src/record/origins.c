/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/origins.h"

#include <errno.h>
#include <stdlib.h>
#include "lib/vec.h"

#define PART (1u << 16) /* entries per allocation; entries are never moved */

struct origins {
	VEC(struct origin *) part;
	uint32_t used; /* indices below this have been used */
	/* Head of the list of free indices, + 1; linked by origin.stack; 0: empty */
	uint32_t unused;
};

struct origins *origins_new(void)
{
	return calloc(1, sizeof(struct origins));
}

void origins_free(struct origins *o)
{
	if (!o)
		return;
	vec_for_each (&o->part, part)
		free(*part);
	vec_free(&o->part);
	free(o);
}

static struct origin *entry(const struct origins *o, uint32_t index)
{
	return &o->part.at[index / PART][index % PART];
}

static int add_part(struct origins *o)
{
	if (vec_push(&o->part, NULL))
		return -ENOMEM;
	o->part.at[o->part.n - 1] = malloc(PART * sizeof(struct origin));
	if (o->part.at[o->part.n - 1])
		return 0;
	o->part.n--;
	return -ENOMEM;
}

int origins_add(struct origins *o, const struct origin *origin, uint32_t *index)
{
	if (o->unused) {
		*index = o->unused - 1;
		o->unused = entry(o, *index)->stack;
	} else {
		if (o->used / PART == o->part.n && add_part(o))
			return -ENOMEM;
		*index = o->used++;
	}
	*entry(o, *index) = *origin;
	return 0;
}

const struct origin *origins_at(const struct origins *o, uint32_t index)
{
	return entry(o, index);
}

struct origin origins_take(struct origins *o, uint32_t index)
{
	struct origin origin = *entry(o, index);

	entry(o, index)->stack = o->unused;
	o->unused = index + 1;
	return origin;
}
