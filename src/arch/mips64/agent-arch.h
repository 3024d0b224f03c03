/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The architecture's part of the agent.  Freestanding. */
#ifndef ARCH_MIPS64_AGENT_ARCH_H
#define ARCH_MIPS64_AGENT_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "unwind/step.h"

#define AG_NR_MUNMAP	       5011
#define AG_NR_RT_SIGPROCMASK   5014
#define AG_NR_SCHED_YIELD      5023
#define AG_NR_SHMCTL	       5030
#define AG_NR_GETTID	       5178
#define AG_NR_FUTEX	       5194
#define AG_NR_CLOCK_GETTIME    5222
#define AG_NR_PROCESS_VM_READV 5304

#define AG_SIGSET_BYTES 16    /* the kernel's sigset_t */
#define AG_IPC_64	0x100 /* flag of shmctl's command for the current structure */

/* Distance of the thread pointer from the end of the thread control block. */
#define AG_TP_BIAS 0x7000

/* Registers at the entry of a hooked function; built by agent-entry.S. */
struct ag_frame {
	const struct ss_desc *desc;
	uint64_t s0_s7[8];
	uint64_t gp, fp;
	uint64_t return_address;
};

/* The stack pointer at entry. */
static inline uint64_t ag_frame_sp(const struct ag_frame *f)
{
	return (uint64_t)(f + 1);
}

/* Address of the return address of the function that was entered; agent-entry.S stored it there. */
static inline uint64_t ag_frame_ra_at(const struct ag_frame *f)
{
	return (uint64_t)&f->return_address;
}

/* Registers at the entry of the function, by column. */
static inline void ag_frame_state(const struct ag_frame *f, uint64_t pc, struct uw_state *s)
{
	for (int i = 0; i < 6; i++)
		s->reg[i] = f->s0_s7[i];
	s->reg[UW_REG_FP] = f->fp;
	s->reg[UW_REG_SP] = ag_frame_sp(f);
	s->reg[8] = f->s0_s7[6];
	s->reg[9] = f->s0_s7[7];
	s->reg[10] = f->gp;
	s->reg[UW_REG_LR] = f->return_address;
	s->reg[UW_REG_PC] = pc;
	s->valid = 0x7ffu | 1u << UW_REG_LR | 1u << UW_REG_PC;
	s->exact_pc = true;
}

/* The frame pointer register at entry. */
static inline uint64_t ag_frame_fp(const struct ag_frame *f)
{
	return f->fp;
}

/* Calls the original mmap; the sixth argument is below the frame (agent-entry.S). */
static inline uintptr_t ag_frame_mmap(const struct ag_frame *f, uintptr_t a0, uintptr_t a1,
				      uintptr_t a2, uintptr_t a3, uintptr_t a4)
{
	uintptr_t (*original)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) =
	    (uintptr_t(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			  uintptr_t))f->desc->original_addr;

	return original(a0, a1, a2, a3, a4, ((const uintptr_t *)f)[-1]);
}

/* Bytes that a call pushes. */
#define AG_RA_SIZE 0

/*
 * The address of one of the agent's private pages.  There is no load relative to the program
 * counter, and the image is not relocated, so it can have no table of addresses: the distance is
 * stored after a call instruction.
 */
#define AG_OWN(symbol)                                                                             \
	({                                                                                         \
		__typeof__(&(symbol)) own_;                                                        \
		__asm__(".set	push\n\t"                                                            \
			".set	noreorder\n\t"                                                       \
			"bal	1f\n\t"                                                               \
			"nop\n"                                                                    \
			"2:	.word	" #symbol " - 2b\n"                                        \
			"1:	lw	%0, 0($31)\n\t"                                                     \
			"daddu	%0, %0, $31\n\t"                                                    \
			".set	pop"                                                                 \
			: "=r"(own_)                                                               \
			:                                                                          \
			: "$31");                                                                  \
		own_;                                                                              \
	})

/* $3, because the kernel's emulation of rdhwr is fastest for this register. */
static inline uint64_t ag_thread_pointer(void)
{
	register uint64_t tp __asm__("$3");

	__asm__("rdhwr	%0, $29" : "=r"(tp));
	return tp;
}

/* Nanoseconds of CLOCK_MONOTONIC, because the counter that rdhwr reads has only 32 bits.
 * agent-clock.c */
uint64_t ag_ticks(void);
#define ag_ticks_of_end ag_ticks

static inline void ag_cpu_pause(void)
{
	__asm__ volatile("pause");
}

/*
 * Compare and swap that is atomic against signals of this thread: an exception clears the link bit.
 * A reader that sees the new value also sees what was written before.
 */
static inline bool ag_cas_local(uint64_t *p, uint64_t old, uint64_t new)
{
	uint64_t now, to;

	__asm__ volatile(".set	push\n\t"
			 ".set	noreorder\n\t"
			 "sync\n"
			 "1:	lld	%0, %2\n\t"
			 "bne	%0, %3, 2f\n\t"
			 "move	%1, %4\n\t"
			 "scd	%1, %2\n\t"
			 "beqz	%1, 1b\n\t"
			 "nop\n"
			 "2:\n\t"
			 ".set	pop"
			 : "=&r"(now), "=&r"(to), "+m"(*p)
			 : "r"(old), "r"(new)
			 : "memory");
	return now == old;
}

/* Makes a system call for the agent.  The kernel preserves the argument registers but $7, and the
 * callee-saved ones. */
static inline long ag_raw_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long v0 __asm__("$2") = nr;
	register long a0 __asm__("$4") = a;
	register long a1 __asm__("$5") = b;
	register long a2 __asm__("$6") = c;
	register long a3 __asm__("$7") = d;
	register long a4 __asm__("$8") = e;
	register long a5 __asm__("$9") = f;

	__asm__ volatile("syscall"
			 : "+r"(v0), "+r"(a3)
			 : "r"(a0), "r"(a1), "r"(a2), "r"(a4), "r"(a5)
			 : "$1", "$3", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25", "hi",
			   "lo", "memory");
	return a3 ? -v0 : v0;
}

#endif
