/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads each value once into a local variable before checking it, because the target can change the
 * block at any moment. */
#include "inject/block/lookup.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct lookup_view {
	const char *base;
	uint64_t length;
};

/* Copies @n bytes at @offset.  Return: false if they are outside the block. */
static bool copy_checked(const struct lookup_view *v, uint64_t offset, void *out, uint64_t n)
{
	if (offset > v->length || n > v->length - offset)
		return false;
	memcpy(out, v->base + offset, n);
	return true;
}

/* The list that was published last; the rows it refers to were written before it. */
static bool take_list(const struct lookup_view *v, uint64_t *list)
{
	if (v->length < sizeof(struct ss_control))
		return false;
	*list =
	    __atomic_load_n(&((const struct ss_control *)v->base)->module_list, __ATOMIC_ACQUIRE);
	return true;
}

/* Finds the module that contains @pc.  Return: false if there is none. */
static bool find_module(const struct lookup_view *v, uint64_t list, uint64_t pc,
			struct ss_module *m)
{
	struct ss_module_list head;
	uint32_t lo = 0, hi;

	if (!copy_checked(v, list, &head, sizeof(head)))
		return false;
	hi = head.n < SS_MAX_MODULES ? head.n : SS_MAX_MODULES;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (!copy_checked(v, list + sizeof(head) + mid * sizeof(*m), m, sizeof(*m)))
			return false;
		if (pc < m->start)
			hi = mid;
		else if (pc >= m->end)
			lo = mid + 1;
		else
			return true;
	}
	return false;
}

/* Rule id of the last row at or before @at, 0 if none. */
static uint16_t find_row(const struct lookup_view *v, const struct ss_module *m, uint64_t at)
{
	uint32_t lo = 0, hi = m->n;
	uint16_t id;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2, pc;

		if (!copy_checked(v, m->pcs + 4ull * mid, &pc, sizeof(pc)))
			return 0;
		if (pc <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && copy_checked(v, m->rules + 2ull * (lo - 1), &id, sizeof(id)) ? id : 0;
}

enum lookup block_rule(const struct ss_control *block, uint64_t length, uint64_t pc,
		       struct uw_full *rule)
{
	const struct lookup_view v = {(const char *)block, length};
	struct ss_module m;
	uint64_t list, full;
	uint16_t id;

	if (!take_list(&v, &list) ||
	    !copy_checked(&v, offsetof(struct ss_control, full_rules), &full, sizeof(full)) ||
	    !find_module(&v, list, pc, &m))
		return LOOKUP_NO_MODULE;
	id = find_row(&v, &m, pc - m.start);
	if (!id || full > length ||
	    !copy_checked(&v, full + id * sizeof(*rule), rule, sizeof(*rule)))
		return LOOKUP_NO_RULE;
	return LOOKUP_RULE;
}

bool block_is_code(const struct ss_control *block, uint64_t length, uint64_t pc)
{
	const struct lookup_view v = {(const char *)block, length};
	struct ss_module m;
	uint64_t list;

	return take_list(&v, &list) && find_module(&v, list, pc, &m);
}
