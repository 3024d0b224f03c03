/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/pc_ranges.h"

int pc_ranges_add(struct pc_ranges *r, uint64_t start, uint64_t end, uint32_t value)
{
	struct pc_range range = {.start = start, .end = end, .value = value};

	return vec_push(&r->list, range);
}

static int by_start(const void *a, const void *b)
{
	const struct pc_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* Of two ranges with the same start, a search must find the shorter one first. */
	return x->end > y->end ? -1 : x->end < y->end;
}

void pc_ranges_sort(struct pc_ranges *r)
{
	uint64_t reach = 0;

	vec_sort(&r->list, by_start);
	vec_for_each (&r->list, it)
		it->reach = reach = it->end > reach ? it->end : reach;
}

const struct pc_range *pc_ranges_find(const struct pc_ranges *r, uint64_t pc)
{
	size_t low = 0, high = r->list.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->list.at[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0 && r->list.at[low - 1].reach > pc; low--) {
		if (r->list.at[low - 1].end > pc)
			return &r->list.at[low - 1];
	}
	return NULL;
}

void pc_ranges_free(struct pc_ranges *r)
{
	vec_free(&r->list);
}
