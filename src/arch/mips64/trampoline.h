/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The code that signal handlers return to: arch.unwind.trampolines. */
#ifndef ARCH_MIPS64_TRAMPOLINE_H
#define ARCH_MIPS64_TRAMPOLINE_H

#include "arch/arch.h"

extern const struct arch_trampoline mips64_trampolines[], mips64be_trampolines[];

#endif
