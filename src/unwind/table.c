/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int unwind_table_add(struct unwind_table *t, uint64_t pc, uint32_t rule)
{
	if (t->n && t->pc[t->n - 1] == pc) {
		t->rule[t->n - 1] = (uint16_t)rule;
		if (t->n > 1 && t->rule[t->n - 2] == rule)
			t->n--;
		return 0;
	}
	/* Addresses in a broken file can wrap around or decrease. */
	if (t->n && (t->rule[t->n - 1] == rule || pc < t->pc[t->n - 1]))
		return 0;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 4096;
		uint64_t *p = reallocarray(t->pc, cap, sizeof(*p));
		uint16_t *r;

		if (!p)
			return -ENOMEM;
		t->pc = p;
		r = reallocarray(t->rule, cap, sizeof(*r));
		if (!r)
			return -ENOMEM;
		t->rule = r;
		t->cap = cap;
	}
	t->pc[t->n] = pc;
	t->rule[t->n++] = (uint16_t)rule;
	return 0;
}

uint16_t unwind_table_find(const struct unwind_table *table, uint64_t pc)
{
	uint32_t lo = 0, hi = table->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (table->pc[mid] <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? table->rule[lo - 1] : 0;
}

void unwind_table_free(struct unwind_table *table)
{
	free(table->pc);
	free(table->rule);
	memset(table, 0, sizeof(*table));
}

int unwind_table_merge(struct unwind_table *a, const struct unwind_table *b)
{
	struct unwind_table out = {0};
	uint32_t i = 0, j = 0;
	int err = 0;

	while ((i < a->n || j < b->n) && !err) {
		uint64_t pc;
		uint16_t rule;

		if (j == b->n || (i < a->n && a->pc[i] <= b->pc[j]))
			pc = a->pc[i++];
		else
			pc = b->pc[j++];
		rule = unwind_table_find(a, pc);
		err = unwind_table_add(&out, pc, rule ? rule : unwind_table_find(b, pc));
	}
	if (err) {
		unwind_table_free(&out);
		return err;
	}
	unwind_table_free(a);
	*a = out;
	return 0;
}
