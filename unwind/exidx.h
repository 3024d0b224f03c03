/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ARM's exception handling tables, .ARM.exidx and .ARM.extab (Exception Handling ABI for the Arm
 * Architecture, IHI0038, 6 and 10).  Their rules hold where calls are made: not in prologues and
 * epilogues.  Pure functions over an ELF image; table.c's own.
 */
#ifndef UNWIND_EXIDX_H
#define UNWIND_EXIDX_H

#include <libelf.h>
#include "arch/arch.h"
#include "unwind/rule.h"

/* A function, or several that are alike, up to the next one.  @rule: NULL where the table says that
 * it cannot be unwound, which is also what linkers write for code without tables. */
typedef int exidx_fn(void *ctx, uint64_t start, const struct uw_full *rule);

/**
 * exidx_each() - calls @fn for every entry, by address, until it returns other than 0
 * Return: what @fn did, or 0 (also if @elf has no such table).
 */
int exidx_each(Elf *elf, const struct arch *arch, exidx_fn *fn, void *ctx);

/**
 * exidx_rule() - what unwinding opcodes say
 * @code, @n: the opcodes, in order; behind them "finish" is implied
 * Return: false if a compact rule cannot say it, or they refuse.
 */
bool exidx_rule(const uint8_t *code, size_t n, const struct arch *arch, struct uw_full *rule);

#endif
