/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The emergency frame of a thread whose registers are changed: what the kernel's rt_sigreturn reads
 * (arch/arm/kernel/signal.c, struct rt_sigframe).  The link register points to the rt_sigreturn
 * code.
 */
#include "arch/arm/arm.h"

#define SIGINFO_BYTES 128
#define VFP_MAGIC     0x56465001u /* asm/ucontext.h */
#define VFP_REGSET    260	  /* NT_ARM_VFP: 32 registers and fpscr */
#define FPEXC_EN      0x40000000u
/* Invalid for sigaltstack(2), so sigreturn leaves the alternate stack unchanged. */
#define NO_SUCH_SS_FLAG 0x7

/* asm/ucontext.h, struct vfp_sigframe */
struct vfp_frame {
	uint32_t magic, size;
	uint8_t regs[VFP_REGSET];
	uint32_t pad;
	uint32_t fpexc, fpinst[2], tail;
};

/* asm/ucontext.h with asm/sigcontext.h */
struct context {
	uint8_t siginfo[SIGINFO_BYTES];
	uint32_t flags, link, stack_sp, stack_flags, stack_size;
	uint32_t trap, error, oldmask, regs[17], fault;
	uint32_t sigmask[2], unused[30];
	_Alignas(8) struct vfp_frame vfp;
	uint32_t end[2];
};

_Static_assert(sizeof(struct vfp_frame) == 288, "VFP_STORAGE_SIZE");
_Static_assert(offsetof(struct context, vfp) == SIGINFO_BYTES + 232, "uc_regspace");

size_t arm_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e)
{
	struct context c = {.stack_flags = NO_SUCH_SS_FLAG,
			    .sigmask = {(uint32_t)e->sigmask[0], (uint32_t)(e->sigmask[0] >> 32)},
			    .vfp = {VFP_MAGIC, sizeof(c.vfp), .fpexc = FPEXC_EN}};

	(void)at;
	if (size < sizeof(c) || e->xstate_size < VFP_REGSET)
		return 0;
	memcpy(c.regs, e->regs->raw, sizeof(c.regs));
	memcpy(c.vfp.regs, e->xstate, VFP_REGSET);
	memcpy(out, &c, sizeof(c));
	return sizeof(c);
}
