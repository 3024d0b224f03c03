/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The architecture's part of the agent.  Freestanding; A32. */
#ifndef ARCH_ARM_AGENT_ARCH_H
#define ARCH_ARM_AGENT_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "unwind/step.h"

#define AG_NR_MUNMAP	       91
#define AG_NR_SCHED_YIELD      158
#define AG_NR_RT_SIGPROCMASK   175
#define AG_NR_GETTID	       224
#define AG_NR_FUTEX	       240
#define AG_NR_SHMCTL	       308
#define AG_NR_PROCESS_VM_READV 376
#define AG_SIGSET_BYTES	       8     /* the kernel's sigset_t */
#define AG_IPC_64	       0x100 /* flag of shmctl's command for the current structure */

/* Registers at the entry of a hooked function; built by agent-entry.S. */
struct ag_frame {
	uint32_t r4_r11[8];
	const struct ss_desc *desc;
	uint32_t return_address;
};

/* The stack pointer at entry. */
static inline uint64_t ag_frame_sp(const struct ag_frame *f)
{
	return (uintptr_t)(f + 1);
}

/* Address of the return address of the function that was entered; agent-entry.S stored it there. */
static inline uint64_t ag_frame_ra_at(const struct ag_frame *f)
{
	return (uintptr_t)&f->return_address;
}

/* Registers at the entry of the function, by column (arch/arm/regs.c). */
static inline void ag_frame_state(const struct ag_frame *f, uint64_t pc, struct uw_state *s)
{
	static const uint8_t column[8] = {1, 2, 3, 0, 4, 5, 8, UW_REG_FP};

	for (int i = 0; i < 8; i++)
		s->reg[column[i]] = f->r4_r11[i];
	s->reg[UW_REG_SP] = ag_frame_sp(f);
	s->reg[UW_REG_LR] = f->return_address;
	s->reg[UW_REG_PC] = pc;
	s->valid = 0x1ffu | 1u << UW_REG_LR | 1u << UW_REG_PC;
	s->exact_pc = true;
}

/* The frame pointer register at entry. */
static inline uint64_t ag_frame_fp(const struct ag_frame *f)
{
	return f->r4_r11[7];
}

/*
 * Calls the original mmap or mmap64.  Arguments beyond the fourth word are on the stack: the
 * descriptor and an offset of one word, or of two, aligned (AAPCS 6.4).
 */
static inline uintptr_t ag_frame_mmap(const struct ag_frame *f, uintptr_t a0, uintptr_t a1,
				      uintptr_t a2, uintptr_t a3, uintptr_t a4)
{
	typedef uintptr_t original_mmap(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
					uintptr_t, uintptr_t, uintptr_t);
	const uintptr_t *stack = (const uintptr_t *)(f + 1);

	return ((original_mmap *)(uintptr_t)f->desc->original_addr)(a0, a1, a2, a3, a4, stack[1],
								    stack[2], stack[3]);
}

/* Bytes that a call pushes. */
#define AG_RA_SIZE 0

static inline uint64_t ag_thread_pointer(void)
{
	uint32_t tp;

	__asm__("mrc p15, 0, %0, c13, c0, 3" : "=r"(tp));
	return tp;
}

/* The virtual counter, which the kernel lets programs read because its vDSO needs it
 * (CNTKCTL.PL0VCTEN); record/clock.c has checked that.  The isb orders it after earlier loads. */
static inline uint64_t ag_ticks(void)
{
	uint64_t now;

	__asm__ volatile("isb\n\tmrrc p15, 1, %Q0, %R0, c14" : "=r"(now) : : "memory");
	return now;
}

#define ag_ticks_of_end ag_ticks

static inline void ag_cpu_pause(void)
{
	__asm__ volatile("yield");
}

/*
 * Compare and swap that is atomic against signals of this thread: an exception clears the exclusive
 * monitor.  Release: a reader that sees the new value also sees what was written before.
 */
static inline bool ag_cas_local(uint64_t *p, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Makes a system call for the agent.  The kernel preserves every register but r0. */
static inline long ag_raw_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r7 __asm__("r7") = nr;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	register long r3 __asm__("r3") = d;
	register long r4 __asm__("r4") = e;
	register long r5 __asm__("r5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(r0)
			 : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
			 : "memory");
	return r0;
}

#endif
