/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/stack_order.h"

#include <stdlib.h>
#include "model/model.h"

struct key {
	uint64_t cost;
	uint32_t id;
};

static int dearest(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

uint32_t *stack_order(const struct model *m, enum cost cost, uint32_t *n)
{
	struct key *k = malloc(m->stacks.n * sizeof(*k));
	uint32_t *ids = malloc(m->stacks.n * sizeof(*ids));

	*n = 0;
	if (!k || !ids) {
		free(k);
		free(ids);
		return NULL;
	}
	for (uint32_t id = 0; id < m->stacks.n; id++) {
		uint64_t c = group_cost(&m->sums.group[id], cost);

		if (c)
			k[(*n)++] = (struct key){c, id};
	}
	qsort(k, *n, sizeof(*k), dearest);
	for (uint32_t i = 0; i < *n; i++)
		ids[i] = k[i].id;
	free(k);
	return ids;
}

uint32_t stacks_used(const struct model *m)
{
	uint32_t n = 0;

	for (uint32_t id = 1; id < m->stacks.n; id++)
		n += m->sums.group[id].allocations || m->sums.group[id].maps ||
		     (m->info.live_only && m->sums.group[id].live_blocks);
	return n;
}
