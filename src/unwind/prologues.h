/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows for functions that have a frame pointer but no call frame information.  Used by build.c
 * only. */
#ifndef UNWIND_PROLOGUES_H
#define UNWIND_PROLOGUES_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * prologue_rows() - derive rows from the first instructions of functions
 * @known: existing rows; code that has rules there is left out
 * @t: empty; receives the rows, each from the end of a function's prologue up to the next
 * function; they are valid at return addresses only (UW_AT_CALLS)
 * Return: 0 (also on architectures that use flow.h instead) or -ENOMEM.
 */
int prologue_rows(Elf *elf, const struct arch *arch, const struct unwind_table *known,
		  struct rule_set *set, struct unwind_table *t);

/* Return: the rule of these rows: a function with a frame pointer, after its prologue. */
struct uw_full prologue_rule(const struct arch *arch);

#endif
