/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The emergency frame of a thread whose registers are changed: what the kernel's rt_sigreturn reads
 * (arch/x86/kernel/signal_64.c, struct rt_sigframe), below it the addresses that lead there.
 *
 *	at	  return address: the rt_sigreturn code
 *	(+8, +16  number and a system call, if that code only pops the number)
 *	struct ucontext, 128 bytes of siginfo that the kernel does not read, the xsave area
 */
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include "arch/x86_64/x86_64.h"

#define NR_RT_SIGRETURN	     15
#define SIGINFO_BYTES	     128
#define XSAVE_ALIGN	     64
#define FX_SW_OFFSET	     464 /* sw_reserved of struct _fpstate; in the regset: features */
#define XSAVE_IN_USE	     512 /* XSTATE_BV: a bit for each component that is not in its initial state */
#define XSAVE_LEAST	     576 /* the fxsave area, with components 0 and 1, and the header */
#define XSAVE_COMPONENTS     63
#define CPUID_XSAVE	     0xd
#define UC_FP_XSTATE	     1 /* asm/ucontext.h */
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4
/* Invalid for sigaltstack(2), so sigreturn leaves the alternate stack unchanged. */
#define NO_SUCH_SS_FLAG	 0x7
#define FORM_POPS_NUMBER 2

#define FP_XSTATE_MAGIC1 0x46505853u /* asm/sigcontext.h, from here on */
#define FP_XSTATE_MAGIC2 0x46505845u

/* Stored in the bytes of the fxsave area that the processor leaves to software. */
struct fpx_sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size, padding[7];
};

struct context {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};

/* asm-generic/ucontext.h, which cannot be included together with the C library's. */
struct kernel_ucontext {
	uint64_t flags, link, stack_sp;
	int32_t stack_flags, pad;
	uint64_t stack_size;
	struct context context;
	uint64_t sigmask;
};

static void fill_context(struct context *c, const struct x86_user_regs *u, long again)
{
	*c = (struct context){.r8 = u->r8,
			      .r9 = u->r9,
			      .r10 = u->r10,
			      .r11 = u->r11,
			      .r12 = u->r12,
			      .r13 = u->r13,
			      .r14 = u->r14,
			      .r15 = u->r15,
			      .di = u->rdi,
			      .si = u->rsi,
			      .bp = u->rbp,
			      .bx = u->rbx,
			      .dx = u->rdx,
			      .ax = again >= 0 ? (uint64_t)again : u->rax,
			      .cx = u->rcx,
			      .sp = u->rsp,
			      .ip = again >= 0 ? u->rip - X86_SYSCALL_LENGTH : u->rip,
			      .flags = u->eflags,
			      .cs = (uint16_t)u->cs,
			      .ss = (uint16_t)u->ss};
}

/* Return: where component @i ends in an xsave area that is not compacted (Intel SDM, volume 1, 13.4.3). */
static size_t component_end(unsigned int i)
{
#if defined(__x86_64__)
	unsigned int size, offset, c, d;

	__cpuid_count(CPUID_XSAVE, i, size, offset, c, d);
	return (size_t)size + offset;
#else
	(void)i; /* only threads of this processor are stopped */
	return 0;
#endif
}

/* Return: the bytes of the xsave area up to the last component in use.  The regset always has room for the
 * tiles of AMX.  A frame with that room is accepted only of a thread that uses them; of others the kernel
 * would restore the fxsave area only (check_xstate_in_sigframe() of arch/x86/kernel/fpu/signal.c). */
static size_t xstate_in_use(const struct arch_emergency *e)
{
	size_t n = XSAVE_LEAST;
	uint64_t in_use;

	if (e->xstate_size < XSAVE_LEAST)
		return e->xstate_size;
	memcpy(&in_use, (const uint8_t *)e->xstate + XSAVE_IN_USE, sizeof(in_use));
	for (unsigned int i = 2; i < XSAVE_COMPONENTS; i++) {
		if (in_use >> i & 1 && component_end(i) > n)
			n = component_end(i);
	}
	return n < e->xstate_size ? n : e->xstate_size;
}

/* The regset's xsave area with the marks by which sigreturn recognizes it (uapi
 * asm/sigcontext.h). */
static void fill_xstate(uint8_t *out, const struct arch_emergency *e, size_t n)
{
	static const uint32_t magic2 = FP_XSTATE_MAGIC2;
	struct fpx_sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1,
				  .extended_size = (uint32_t)(n + sizeof(magic2)),
				  .xstate_size = (uint32_t)n};

	memcpy(out, e->xstate, n);
	memcpy(&sw.xfeatures, out + FX_SW_OFFSET, sizeof(sw.xfeatures));
	memcpy(out + FX_SW_OFFSET, &sw, sizeof(sw));
	memcpy(out + n, &magic2, sizeof(magic2));
}

long x86_restarted_number(const uint8_t *code, size_t n)
{
	/* poll, nanosleep, futex, clock_nanosleep, futex_waitv: calls that the kernel ends with
	 * -ERESTART_RESTARTBLOCK. */
	static const uint32_t restartable[] = {7, 35, 202, 230, 449};
	uint32_t number;

	if (n < X86_SYSCALL_LENGTH + 5)
		return -1;
	for (size_t at = n - X86_SYSCALL_LENGTH - 5 + 1; at-- > 0;) {
		if (code[at] != 0xb8) /* mov $number, %eax */
			continue;
		memcpy(&number, code + at + 1, sizeof(number));
		for (size_t k = 0; k < sizeof(restartable) / sizeof(restartable[0]); k++) {
			if (number == restartable[k])
				return (long)number;
		}
	}
	return -1;
}

size_t x86_emergency_frame(uint8_t *out, size_t size, uint64_t at, const struct arch_emergency *e)
{
	uint64_t chain[3] = {e->sigreturn, NR_RT_SIGRETURN, e->syscall_return};
	size_t links = e->sigreturn_form == FORM_POPS_NUMBER ? sizeof(chain) : sizeof(chain[0]);
	size_t fp = links + sizeof(struct kernel_ucontext) + SIGINFO_BYTES,
	       xstate = xstate_in_use(e);
	struct kernel_ucontext uc = {.flags =
					 UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
				     .stack_flags = NO_SUCH_SS_FLAG,
				     .sigmask = e->sigmask[0]};

	fp = (fp + XSAVE_ALIGN - 1) & ~(size_t)(XSAVE_ALIGN - 1);
	if (fp + xstate + sizeof(uint32_t) > size)
		return 0;
	fill_context(&uc.context, (const struct x86_user_regs *)e->regs->raw, e->again);
	uc.context.fpstate = at + fp;
	memset(out, 0, fp);
	memcpy(out, chain, links);
	memcpy(out + links, &uc, sizeof(uc));
	fill_xstate(out + fp, e, xstate);
	return fp + xstate + sizeof(uint32_t);
}
