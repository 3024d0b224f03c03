/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arch/mips64/trampoline.h"

/* struct rt_sigframe (arch/mips/kernel/signal.c): 24 bytes for the ABI, siginfo, ucontext with a
 * sigcontext of 64-bit registers at 40; its pc follows 32 floating point registers and 8 words for
 * multiplication. */
#define R(n) (24 + 128 + 40 + 8 * (n))

static const int16_t at[UW_MAX_REGS] = {R(16), R(17), R(18), R(19), R(20), R(21),
					R(30), R(29), R(22), R(23), R(28), -1,
					-1,    -1,    -1,    R(31), R(72)};

/* li v0, 5211; syscall */
const struct arch_trampoline mips64_trampolines[] = {
    {.code = {.bytes = {0x5b, 0x14, 0x02, 0x24, 0x0c, 0x00, 0x00, 0x00}, .length = 8}, .at = at},
    {.at = NULL}};
const struct arch_trampoline mips64be_trampolines[] = {
    {.code = {.bytes = {0x24, 0x02, 0x14, 0x5b, 0x00, 0x00, 0x00, 0x0c}, .length = 8}, .at = at},
    {.at = NULL}};
