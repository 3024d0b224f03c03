/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds the compact unwind table of an ELF file of any architecture from .eh_frame, .debug_frame
 * and, for code without these, other sources.  Works on a file or a memory image, independent of
 * any process.
 */
#ifndef UNWIND_TABLE_H
#define UNWIND_TABLE_H

#include <libelf.h>
#include <stdint.h>
#include "arch/arch.h"
#include "lib/err.h"
#include "unwind/rule.h"

/* The set of distinct rules, shared by all tables of a recording.  Rule 0 is invalid, rule 1
 * outermost. */
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

/* Rows sorted by pc (ELF virtual address).  A row is valid up to the pc of the next one. */
struct unwind_table {
	uint64_t *pc;
	uint16_t *rule; /* 0: no rule from here on */
	uint32_t n, cap;
};

/**
 * unwind_table_build() - build the table of all code of an ELF image
 * @elf: file or memory image (elf_memory() of the vDSO); stays the caller's
 * @debug: separate debug file with .debug_frame, or NULL
 * Start code of a program or thread without CFI (musl) counts as outermost.
 * Return: 0 (n can be 0: no information), or -ENOMEM/-EINVAL.
 */
int unwind_table_build(Elf *elf, Elf *debug, struct rule_set *set, struct unwind_table *table);
void unwind_table_free(struct unwind_table *table);
/* Return: the rule id at ELF address @pc, 0 if none. */
uint16_t unwind_table_find(const struct unwind_table *table, uint64_t pc);

/* Return: length of the build-id copied to @out, 0 if the file has none. */
int elf_build_id(Elf *elf, uint8_t out[32]);

#endif
