/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The set of distinct rules, shared by all tables of a recording. */
#ifndef UNWIND_RULE_SET_H
#define UNWIND_RULE_SET_H

#include <stdint.h>
#include "arch/arch.h"
#include "unwind/rule.h"

/* Rule 0 is invalid, rule 1 outermost. */
#define UW_RULE_OUTERMOST 1u
struct rule_set;
/* Return: a set with the two fixed rules, or NULL when out of memory. */
struct rule_set *rule_set_new(void);
void rule_set_free(struct rule_set *set);
/* Return: id (stable, < 65535), or 0 when the set is full. */
uint32_t rule_set_add(struct rule_set *set, const struct uw_full *full);
uint32_t rule_set_count(const struct rule_set *set);
/* Return: the rule at the first instruction of a function. */
struct uw_full uw_entry_rule(const struct arch *arch);
/* Arrays of rule_set_count() entries; valid until the next rule_set_add(). */
const struct uw_rule *rule_set_rules(const struct rule_set *set);
const struct uw_full *rule_set_full(const struct rule_set *set);

#endif
