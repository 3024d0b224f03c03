/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of the hooked functions. */
#ifndef INJECT_HOOKS_NAMES_H
#define INJECT_HOOKS_NAMES_H

#include <stdint.h>
#include "inject/hooks/find.h"

/* The name under which the function at @pc (with SS_PC_EXACT, as in stacks) was hooked, rather than
 * one of its aliases.  Return: the name; NULL if @pc is not a hooked function, or is a C++
 * function, whose symbol is to be demangled. */
const char *hook_name_at(const struct hook_plan *plan, uint64_t pc);

#endif
