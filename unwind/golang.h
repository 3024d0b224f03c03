/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What Go's call frame information leaves out: where its runtime changes stacks; table.c's own. */
#ifndef UNWIND_GOLANG_H
#define UNWIND_GOLANG_H

#include "unwind/table.h"

/**
 * golang_rows() - rows of the functions of Go's runtime that begin stacks or change them
 * @t: empty; gets the rows, which are right where .debug_frame is not: it says of these functions
 *	that their caller's frame is behind theirs
 * Return: 0 (also where there is no Go) or -ENOMEM.
 */
int golang_rows(Elf *elf, const struct arch *arch, struct rule_set *set, struct unwind_table *t);

#endif
