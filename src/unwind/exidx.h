/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ARM's exception handling tables, .ARM.exidx and .ARM.extab (Exception Handling ABI for the Arm
 * Architecture, IHI0038, 6 and 10).  Their rules are valid at calls, but not in prologues and
 * epilogues.  Pure functions over an ELF image, used by table.c only.
 */
#ifndef UNWIND_EXIDX_H
#define UNWIND_EXIDX_H

#include <libelf.h>
#include "arch/arch.h"
#include "unwind/rule.h"

/* Receives an entry: @rule is valid from @start, where a function or several with the same rule
 * begin, up to the next entry.  NULL: the table marks it as impossible to unwind; linkers write
 * this for code without tables, too. */
typedef int exidx_fn(void *ctx, uint64_t start, const struct uw_full *rule);

/**
 * exidx_each() - call @fn for every entry, by address, until it returns other than 0
 * Return: that value, or 0 (also if @elf has no such table).
 */
int exidx_each(Elf *elf, const struct arch *arch, exidx_fn *fn, void *ctx);

/**
 * exidx_rule() - translate unwinding opcodes to a rule
 * @code, @n: the opcodes, in order; a final "finish" is implied
 * Return: false if a rule cannot express them, or if they refuse to unwind.
 */
bool exidx_rule(const uint8_t *code, size_t n, const struct arch *arch, struct uw_full *rule);

#endif
