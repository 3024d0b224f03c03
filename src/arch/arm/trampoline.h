/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The code that signal handlers return to: arch.unwind.trampolines. */
#ifndef ARCH_ARM_TRAMPOLINE_H
#define ARCH_ARM_TRAMPOLINE_H

#include "arch/arch.h"

extern const struct arch_trampoline arm_trampolines[];

#endif
