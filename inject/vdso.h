/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that the kernel maps into every process (vdso(7)). */
#ifndef INJECT_VDSO_H
#define INJECT_VDSO_H

#include "attach/procfs.h"
#include "attach/target.h"

/**
 * vdso_function() - where a function of the target's vdso is
 * @name: as in its dynamic symbols, __vdso_clock_gettime
 * Return: its address in the target, 0: there is no such function, or no vdso.
 */
uint64_t vdso_function(struct target *t, const struct maps *maps, const char *name);

#endif
