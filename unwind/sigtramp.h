/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where signal handlers return to, by its code. */
#ifndef UNWIND_SIGTRAMP_H
#define UNWIND_SIGTRAMP_H

#include "unwind/table.h"

/**
 * sigtramp_rows() - rows of all trampolines in some code
 * @code, @n: executable bytes at @addr, above what @t already has
 * A handler's return address is a trampoline's first byte and is looked up one byte before: rows
 * begin there.
 * Return: 0 or -ENOMEM.
 */
int sigtramp_rows(const struct arch *arch, const uint8_t *code, size_t n, uint64_t addr,
		  struct rule_set *set, struct unwind_table *t);
/* The same of all executable segments of @elf. */
int sigtramp_rows_of_elf(Elf *elf, const struct arch *arch, struct rule_set *set,
			 struct unwind_table *t);

#endif
