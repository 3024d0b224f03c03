/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signal trampolines of C libraries, and of the kernel's page for those that have none
 * (arch/arm/kernel/sigreturn_codes.S). */
#include "arch/arm/trampoline.h"

/* struct sigframe and rt_sigframe (arch/arm/kernel/signal.c): ucontext with a sigcontext at 20, in
 * rt_sigframe after siginfo. */
#define R(n)	(20 + 12 + 4 * (n))
#define RT_R(n) (128 + R(n))

/* In the order of the columns. */
#define FRAME(r)                                                                                   \
	{                                                                                          \
		r(7), r(4), r(5), r(6), r(8), r(9), r(11), r(13), r(10), r(12), -1, -1, -1, -1,    \
		    -1, r(14), r(15)                                                               \
	}

static const int16_t plain[UW_MAX_REGS] = FRAME(R), rt[UW_MAX_REGS] = FRAME(RT_R);

const struct arch_trampoline arm_trampolines[] = {
    /* mov r7, #173; svc 0, and the kernel's svc 0x9000ad */
    {.code = {.bytes = {0xad, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef}, .length = 8}, .at = rt},
    {.code = {.bytes = {0xad, 0x70, 0xa0, 0xe3, 0xad, 0, 0x90, 0xef}, .length = 8}, .at = rt},
    /* Thumb: movs or mov.w */
    {.code = {.bytes = {0xad, 0x27, 0, 0xdf}, .length = 4}, .at = rt},
    {.code = {.bytes = {0x4f, 0xf0, 0xad, 0x07, 0, 0xdf}, .length = 6}, .at = rt},
    /* The same with sigreturn, the call from before Linux 2.2, 119. */
    {.code = {.bytes = {0x77, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef}, .length = 8}, .at = plain},
    {.code = {.bytes = {0x77, 0x70, 0xa0, 0xe3, 0x77, 0, 0x90, 0xef}, .length = 8}, .at = plain},
    {.code = {.bytes = {0x77, 0x27, 0, 0xdf}, .length = 4}, .at = plain},
    {.code = {.bytes = {0x4f, 0xf0, 0x77, 0x07, 0, 0xdf}, .length = 6}, .at = plain},
    {.at = NULL}};
