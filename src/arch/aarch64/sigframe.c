/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The emergency frame of a thread whose registers are changed: what the kernel's rt_sigreturn reads
 * at the stack pointer (arch/arm64/kernel/signal.c, struct rt_sigframe).
 *
 *	at	128 bytes of siginfo that the kernel does not read
 *	+128	struct ucontext: flags, link, stack, signal mask, registers
 *	+592	4096 bytes of records: vector registers, an empty one
 */
#include <string.h>
#include "arch/aarch64/aarch64.h"

#define FPSIMD_MAGIC   0x46508001u /* uapi asm/sigcontext.h */
#define FPSIMD_VECTORS 512	   /* in the register set (struct user_fpsimd_state) before ... */
#define FPSIMD_STATUS  8	   /* ... fpsr and fpcr, which are first in the record */
/* Invalid for sigaltstack(2), so sigreturn leaves the alternate stack unchanged. */
#define NO_SUCH_SS_FLAG 0x7

/* uapi asm/ucontext.h and asm/sigcontext.h. */
struct kernel_frame {
	uint8_t siginfo[128];
	uint64_t flags, link, stack_sp;
	int32_t stack_flags, pad;
	uint64_t stack_size;
	uint64_t sigmask, unused[15];
	_Alignas(16) uint64_t fault_address;
	uint8_t regs[A64_PRSTATUS];
	_Alignas(16) struct {
		uint32_t magic, size;
		uint8_t status[FPSIMD_STATUS], vectors[FPSIMD_VECTORS];
	} fpsimd;
	uint8_t reserved[4096 - 528]; /* begins with an empty record, which ends the list */
};

_Static_assert(offsetof(struct kernel_frame, fpsimd) == 592, "struct rt_sigframe");
_Static_assert(sizeof(struct kernel_frame) == 592 + 4096, "struct rt_sigframe");

size_t a64_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e)
{
	struct kernel_frame f = {.stack_flags = NO_SUCH_SS_FLAG, .sigmask = e->sigmask[0]};
	const uint8_t *xstate = e->xstate;
	uint64_t again = (uint64_t)e->again;

	(void)at;
	if (size < sizeof(f) || e->xstate_size < FPSIMD_VECTORS + FPSIMD_STATUS)
		return 0;
	memcpy(f.regs, e->regs->raw, sizeof(f.regs));
	/* do_signal() has set the program counter to the system call already. */
	if (e->again >= 0)
		memcpy(f.regs + A64_X8, &again, sizeof(again));
	f.fpsimd.magic = FPSIMD_MAGIC;
	f.fpsimd.size = sizeof(f.fpsimd);
	memcpy(f.fpsimd.vectors, xstate, FPSIMD_VECTORS);
	memcpy(f.fpsimd.status, xstate + FPSIMD_VECTORS, FPSIMD_STATUS);
	memcpy(out, &f, sizeof(f));
	return sizeof(f);
}
