/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arch/aarch64/trampoline.h"

/* struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, ucontext with a sigcontext at 176. */
#define X(n) (128 + 176 + 8 + 8 * (n))

static const int16_t at[UW_MAX_REGS] = {X(19), X(20), X(21), X(22), X(23), X(24),
					X(29), X(31), X(25), X(26), X(27), X(28),
					-1,    -1,    -1,    X(30), X(32)};

/* mov x8, #139; svc #0.  The vDSO's call frame information leads to the caller of the interrupted
 * function. */
const struct arch_trampoline aarch64_trampolines[] = {
    {.code = {.bytes = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}, .length = 8}, .at = at},
    {.at = NULL}};
