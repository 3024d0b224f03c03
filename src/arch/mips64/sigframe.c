/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The emergency frame of a thread whose registers are changed: what the kernel's rt_sigreturn reads
 * at the stack pointer (arch/mips/kernel/signal.c, struct rt_sigframe).  The link register points
 * to the rt_sigreturn code.  In the byte order of this machine.
 */
#include <string.h>
#include "arch/mips64/mips64.h"

#define SIGINFO_BYTES 128
#define FPREGS	      32
#define USED_FP	      1 /* asm/sigcontext.h: sc_fpregs must be restored */
#define USED_FR1      2 /* 32 registers of 64 bits */
/* Invalid for sigaltstack(2), so sigreturn leaves the alternate stack unchanged. */
#define NO_SUCH_SS_FLAG 0x7

/* NT_PRFPREG */
struct fpregs {
	uint64_t reg[FPREGS];
	uint32_t fcr31, fir;
};

/* uapi asm/sigcontext.h, n64 */
struct context {
	uint64_t regs[32], fpregs[FPREGS];
	uint64_t hi[4], lo[4], pc;
	uint32_t fpc_csr, used_math, dsp, reserved;
};

struct mips_sigframe {
	uint32_t argument_save[4], trampoline[2];
	uint8_t siginfo[SIGINFO_BYTES];
	uint64_t flags, link;
	uint64_t stack_sp, stack_size;
	int32_t stack_flags, pad;
	struct context context;
	uint64_t sigmask[2];
};

_Static_assert(sizeof(struct context) == 600, "asm/sigcontext.h");
_Static_assert(sizeof(struct mips_sigframe) == 24 + SIGINFO_BYTES + 40 + 600 + 16,
	       "struct rt_sigframe");

static void fill_context(struct context *c, const struct arch_emergency *e)
{
	struct fpregs fp;

	for (int i = 1; i < 32; i++)
		c->regs[i] = mips_reg(e->regs, i);
	c->hi[0] = mips_reg(e->regs, MIPS_R_HI);
	c->lo[0] = mips_reg(e->regs, MIPS_R_LO);
	c->pc = mips_reg(e->regs, MIPS_R_EPC);
	if (e->again >= 0) {
		c->pc -= MIPS_INSN;
		c->regs[MIPS_R_V0] = (uint64_t)e->again;
		c->regs[MIPS_R_A3] = mips_reg(e->regs, MIPS_R_K0);
	}
	if (e->xstate_size < sizeof(fp))
		return;
	memcpy(&fp, e->xstate, sizeof(fp));
	memcpy(c->fpregs, fp.reg, sizeof(fp.reg));
	c->fpc_csr = fp.fcr31;
	c->used_math = USED_FP | USED_FR1;
}

size_t mips_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e)
{
	struct mips_sigframe f = {.stack_flags = NO_SUCH_SS_FLAG};

	(void)at;
	if (sizeof(f) > size)
		return 0;
	memcpy(f.sigmask, e->sigmask, sizeof(f.sigmask));
	fill_context(&f.context, e);
	memcpy(out, &f, sizeof(f));
	return sizeof(f);
}

static long number_in(uint32_t word)
{
	/* poll, nanosleep, futex, clock_nanosleep, futex_waitv: calls that the kernel ends with
	 * -ERESTART_RESTARTBLOCK. */
	static const uint16_t restartable[] = {5007, 5034, 5194, 5224, 5449};

	if (word >> 16 != 0x2402 && word >> 16 != 0x6402) /* li $v0, number */
		return -1;
	for (size_t k = 0; k < sizeof(restartable) / sizeof(restartable[0]); k++) {
		if ((word & 0xffff) == restartable[k])
			return restartable[k];
	}
	return -1;
}

long mips_restarted_number(const uint8_t *code, size_t n)
{
	uint32_t word;

	n -= n % MIPS_INSN;
	for (size_t at = n < 2 * MIPS_INSN ? 0 : n - MIPS_INSN; at > 0; at -= MIPS_INSN) {
		memcpy(&word, code + at - MIPS_INSN, sizeof(word));
		if (number_in(word) >= 0)
			return number_in(word);
	}
	return -1;
}
