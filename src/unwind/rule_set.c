/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The set of distinct rules.  Programs have tens of thousands of rows but only a few hundred
 * rules. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "unwind/rule_set.h"
#include "unwind/step.h"

#define MAX_RULES 65535u
#define BUCKETS	  131072u

struct rule_set {
	struct uw_rule *rules;
	struct uw_full *full;
	uint32_t n, cap;
	uint32_t bucket[BUCKETS]; /* index + 1 */
};

static uint32_t hash(const struct uw_full *f)
{
	uint64_t h = 0, word;

	_Static_assert(sizeof(*f) % sizeof(word) == 0, "whole words");
	for (size_t i = 0; i < sizeof(*f); i += sizeof(word)) {
		memcpy(&word, (const char *)f + i, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 32);
}

static struct uw_rule simplify(const struct uw_full *f, uint32_t id)
{
	uint8_t flags = f->flags & (uint8_t) ~(UW_PC_TAGGED | UW_AT_CALLS);
	struct uw_rule r = {.flags = flags, .full = id, .fp_off = UW_FP_SAME};
	bool simple = !flags && f->cfa_kind == UW_CFA_REG &&
		      (f->cfa_reg == UW_REG_SP || f->cfa_reg == UW_REG_FP) &&
		      f->where[UW_REG_PC] == UW_AT_CFA && f->where[UW_REG_SP] == UW_SAME;

	if (f->where[UW_REG_FP] == UW_AT_CFA && f->off[UW_REG_FP] < 0 &&
	    f->off[UW_REG_FP] > INT16_MIN)
		r.fp_off = (int16_t)f->off[UW_REG_FP];
	else if (f->where[UW_REG_FP] != UW_SAME)
		simple = false;
	if (!simple) {
		r.flags |= flags & (UW_OUTERMOST | UW_INVALID) ? 0 : UW_FULL;
		return r;
	}
	r.cfa_is_fp = f->cfa_reg == UW_REG_FP;
	r.cfa_off = f->cfa_off;
	r.ra_off = f->off[UW_REG_PC];
	return r;
}

static uint32_t append_rule(struct rule_set *s, const struct uw_full *f)
{
	if (s->n == MAX_RULES)
		return 0;
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 1024;
		struct uw_rule *r = reallocarray(s->rules, cap, sizeof(*r));
		struct uw_full *g;

		if (!r)
			return 0;
		s->rules = r;
		g = reallocarray(s->full, cap, sizeof(*g));
		if (!g)
			return 0;
		s->full = g;
		s->cap = cap;
	}
	s->full[s->n] = *f;
	s->rules[s->n] = simplify(f, s->n);
	return s->n++;
}

struct uw_full uw_entry_rule(const struct arch *arch)
{
	struct uw_full f = {.cfa_kind = UW_CFA_REG, .cfa_reg = UW_REG_SP};

	f.cfa_off = arch->unwind.call_push;
	for (int i = 0; i < UW_MAX_REGS; i++)
		f.where[i] = arch->unwind.preserved >> i & 1 ? UW_SAME : UW_UNDEFINED;
	f.where[UW_REG_SP] = UW_SAME;
	if (arch->unwind.call_push) {
		f.where[UW_REG_PC] = UW_AT_CFA;
		f.off[UW_REG_PC] = -arch->unwind.call_push;
	} else {
		f.flags = UW_PC_TAGGED;
		f.where[UW_REG_LR] = UW_UNDEFINED;
		f.where[UW_REG_PC] = UW_REG;
		f.off[UW_REG_PC] = UW_REG_LR;
	}
	return f;
}

struct rule_set *rule_set_new(void)
{
	struct uw_full invalid = {.flags = UW_INVALID}, outermost = {.flags = UW_OUTERMOST};
	struct rule_set *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	append_rule(s, &invalid);
	if (append_rule(s, &outermost) != UW_RULE_OUTERMOST) {
		rule_set_free(s);
		return NULL;
	}
	return s;
}

void rule_set_free(struct rule_set *set)
{
	if (!set)
		return;
	free(set->rules);
	free(set->full);
	free(set);
}

uint32_t rule_set_add(struct rule_set *s, const struct uw_full *full)
{
	uint32_t i, id;

	if (full->flags & UW_INVALID)
		return 0;
	if (full->flags & UW_OUTERMOST)
		return UW_RULE_OUTERMOST;
	for (i = hash(full) % BUCKETS; s->bucket[i]; i = (i + 1) % BUCKETS) {
		id = s->bucket[i] - 1;
		if (!memcmp(&s->full[id], full, sizeof(*full)))
			return id;
	}
	id = append_rule(s, full);
	if (id)
		s->bucket[i] = id + 1;
	return id;
}

uint32_t rule_set_count(const struct rule_set *set)
{
	return set->n;
}

const struct uw_rule *rule_set_rules(const struct rule_set *set)
{
	return set->rules;
}

const struct uw_full *rule_set_full(const struct rule_set *set)
{
	return set->full;
}
