/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that the kernel maps into every process (vdso(7)). */
#ifndef INJECT_VDSO_H
#define INJECT_VDSO_H

#include "attach/proc/procfs.h"
#include "attach/target.h"

/**
 * vdso_function() - address of a function of the target's vDSO
 * @name: as in its dynamic symbols, for example __vdso_clock_gettime
 * Return: its address in the target; 0 if there is no such function, or no vDSO.
 */
uint64_t vdso_function(struct target *t, const struct maps *maps, const char *name);

#endif
