/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds signal trampolines, to which signal handlers return, by their code. */
#ifndef UNWIND_SIGTRAMP_H
#define UNWIND_SIGTRAMP_H

#include <libelf.h>
#include "unwind/rule_set.h"
#include "unwind/table.h"

/**
 * sigtramp_rows() - add rows for all trampolines in some code
 * @code, @n: executable bytes at @addr, above the rows of @t
 *
 * A handler's return address is the first byte of a trampoline and is searched for one byte before, so
 * rows begin there.
 * Return: 0 or -ENOMEM.
 */
int sigtramp_rows(const struct arch *arch, const uint8_t *code, size_t n, uint64_t addr,
		  struct rule_set *set, struct unwind_table *t);
/* As sigtramp_rows(), for all executable segments of @elf. */
int sigtramp_rows_of_elf(Elf *elf, const struct arch *arch, struct rule_set *set,
			 struct unwind_table *t);

#endif
