/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values are read once into locals, then checked: they can change at any moment. */
#include "inject/lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ROWS_MAX (32u << 20) /* no honest block has as many */

struct view {
	const char *base;
	uint64_t length;
};

/* Copies @n bytes at @offset.  Return: false if they are not in the block. */
static bool take(const struct view *v, uint64_t offset, void *out, uint64_t n)
{
	if (offset > v->length || n > v->length - offset)
		return false;
	memcpy(out, v->base + offset, n);
	return true;
}

/* Rows of the module that holds @pc.  Return: false if there is none. */
static bool find_module(const struct view *v, uint64_t list, uint64_t pc, struct ss_module *m)
{
	struct ss_module_list head;

	if (!take(v, list, &head, sizeof(head)))
		return false;
	for (uint32_t i = 0; i < head.n && i < SS_MAX_MODULES; i++) {
		if (!take(v, list + sizeof(head) + i * sizeof(*m), m, sizeof(*m)))
			return false;
		if (pc >= m->start && pc < m->end)
			return true;
	}
	return false;
}

/* Rule id of the last row at or before @at, 0 if none. */
static uint16_t find_row(const struct view *v, const struct ss_module *m, uint64_t at)
{
	uint32_t lo = 0, hi = m->n;
	uint16_t id;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2, pc;

		if (!take(v, m->pcs + 4ull * mid, &pc, sizeof(pc)))
			return 0;
		if (pc <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && take(v, m->rules + 2ull * (lo - 1), &id, sizeof(id)) ? id : 0;
}

enum lookup block_rule(const struct ss_control *block, uint64_t length, uint64_t pc,
		       struct uw_full *rule)
{
	const struct view v = {(const char *)block, length};
	struct ss_module m;
	uint64_t list, full;
	uint16_t id;

	if (!take(&v, offsetof(struct ss_control, module_list), &list, sizeof(list)) ||
	    !take(&v, offsetof(struct ss_control, full_rules), &full, sizeof(full)) ||
	    !find_module(&v, list, pc, &m))
		return LOOKUP_NO_MODULE;
	id = find_row(&v, &m, pc - m.start);
	if (!id || full > length || !take(&v, full + id * sizeof(*rule), rule, sizeof(*rule)))
		return LOOKUP_NO_RULE;
	return LOOKUP_RULE;
}

/* Row @i of module @m as a span, if its rule is that of a signal frame. */
static bool is_signal_row(const struct view *v, const struct ss_module *m, uint64_t full,
			  uint32_t i, struct span *span)
{
	uint32_t pc, next = (uint32_t)(m->end - m->start);
	uint16_t id;
	uint8_t flags;

	if (!take(v, m->rules + 2ull * i, &id, sizeof(id)) || !id || full > v->length ||
	    !take(v, full + id * sizeof(struct uw_full) + offsetof(struct uw_full, flags), &flags,
		  sizeof(flags)) ||
	    !(flags & UW_SIGNAL) || !take(v, m->pcs + 4ull * i, &pc, sizeof(pc)))
		return false;
	if (i + 1 < m->n)
		take(v, m->pcs + 4ull * (i + 1), &next, sizeof(next));
	*span = (struct span){m->start + pc, m->start + next};
	return true;
}

int block_signal_frames(const struct ss_control *block, uint64_t length, spans_t *spans)
{
	const struct view v = {(const char *)block, length};
	const struct span everywhere = {0, UINT64_MAX};
	struct ss_module_list head;
	uint64_t list, full;
	uint32_t left = ROWS_MAX;

	if (!take(&v, offsetof(struct ss_control, module_list), &list, sizeof(list)) ||
	    !take(&v, offsetof(struct ss_control, full_rules), &full, sizeof(full)) ||
	    !take(&v, list, &head, sizeof(head)))
		return 0;
	for (uint32_t k = 0; k < head.n && k < SS_MAX_MODULES; k++) {
		struct ss_module m;
		struct span span;

		if (!take(&v, list + sizeof(head) + k * sizeof(m), &m, sizeof(m)))
			break;
		if (m.n > left)
			return vec_push(spans, everywhere);
		left -= m.n;
		for (uint32_t i = 0; i < m.n; i++) {
			if (is_signal_row(&v, &m, full, i, &span) && vec_push(spans, span))
				return -ENOMEM;
		}
	}
	return 0;
}
