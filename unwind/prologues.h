/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of code without call frame information whose functions keep a frame pointer; table.c's own.
 */
#ifndef UNWIND_PROLOGUES_H
#define UNWIND_PROLOGUES_H

#include "unwind/table.h"

/**
 * prologue_rows() - by the instructions that functions begin with
 * @known: rows there are; where they say something nothing is looked for
 * @t: empty; gets the rows, which hold at return addresses only (UW_AT_CALLS): from where a
 *	function has made its frame up to where the next one begins
 * Return: 0 (also where the architecture's instructions are followed instead) or -ENOMEM.
 */
int prologue_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t);

/* The rule of those rows: where a function that keeps a frame pointer has made its frame. */
struct uw_full prologue_rule(const struct arch *arch);

#endif
