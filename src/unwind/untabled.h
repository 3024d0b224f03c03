/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows for code that call frame information does not cover.  Used by build.c only. */
#ifndef UNWIND_UNTABLED_H
#define UNWIND_UNTABLED_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * untabled_rows() - derive rows from .ARM.exidx and from the code itself
 * @known: existing rows, which tell where functions start
 * @t: empty; receives rows of all code, including code that @known covers
 *
 * If both have a rule, .ARM.exidx decides which rule is valid at calls.  If the code analysis finds
 * the same rule, it decides where in the function the rule begins and ends.
 *
 * Return: 0 (also on architectures that do not need this) or -ENOMEM.
 */
int untabled_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t);

#endif
