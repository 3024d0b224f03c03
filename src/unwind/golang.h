/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows for functions of Go's runtime that switch stacks, for which Go's call frame information is
 * wrong.  Used by build.c only. */
#ifndef UNWIND_GOLANG_H
#define UNWIND_GOLANG_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * golang_rows() - compute the rows of functions of Go's runtime that begin or switch stacks
 * @t: empty; receives the rows.  They replace those of .debug_frame, which assume that the caller's
 * frame is next to the function's own
 * Return: 0 (also if the file has no Go code) or -ENOMEM.
 */
int golang_rows(Elf *elf, const struct arch *arch, struct rule_set *set, struct unwind_table *t);

#endif
