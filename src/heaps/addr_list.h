/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Addresses that a walk must recognize, such as the blocks in threads' caches.  First all are
 * pushed, then they are sorted, then looked up in ascending order. */
#ifndef HEAPS_ADDR_LIST_H
#define HEAPS_ADDR_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "lib/vec.h"

struct addr_list {
	VEC(uint64_t) list;
	size_t next;	/* first one that was not passed yet */
	size_t matched; /* how many lookups succeeded */
};

static inline int addr_list_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Return: 0 or -ENOMEM. */
static inline int addr_list_push(struct addr_list *l, uint64_t addr)
{
	return vec_push(&l->list, addr);
}

static inline void addr_list_sort(struct addr_list *l)
{
	vec_sort(&l->list, addr_list_compare);
}

/* Is @addr in the list?  It must not be lower than in the call before.  Duplicates match one by
 * one. */
static inline bool addr_list_take(struct addr_list *l, uint64_t addr)
{
	while (l->next < l->list.n && l->list.at[l->next] < addr)
		l->next++;
	if (l->next == l->list.n || l->list.at[l->next] != addr)
		return false;
	l->next++;
	l->matched++;
	return true;
}

static inline void addr_list_free(struct addr_list *l)
{
	vec_free(&l->list);
}

#endif
