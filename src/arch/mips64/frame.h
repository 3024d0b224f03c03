/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What MIPS64 instructions do to the frame of their function. */
#ifndef ARCH_MIPS64_FRAME_H
#define ARCH_MIPS64_FRAME_H

#include "arch/arch.h"

/* arch.unwind.frame_insn, for both byte orders. */
bool mips_frame_insn(const struct arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		     uint8_t mode, struct arch_frame_insn *insn);

#endif
