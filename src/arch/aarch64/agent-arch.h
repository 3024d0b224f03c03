/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The architecture's part of the agent.  Freestanding. */
#ifndef ARCH_AARCH64_AGENT_ARCH_H
#define ARCH_AARCH64_AGENT_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "unwind/step.h"

#define AG_NR_FUTEX	       98
#define AG_NR_SCHED_YIELD      124
#define AG_NR_RT_SIGPROCMASK   135
#define AG_NR_GETTID	       178
#define AG_NR_SHMCTL	       195
#define AG_NR_MUNMAP	       215
#define AG_NR_PROCESS_VM_READV 270
#define AG_SIGSET_BYTES	       8 /* the kernel's sigset_t */
#define AG_IPC_64	       0 /* flag of shmctl's command for the current structure */

/* Registers at the entry of a hooked function; built by agent-entry.S. */
struct ag_frame {
	const struct ss_desc *desc;
	uint64_t x19_x28[10];
	uint64_t x29;
	uint64_t unused;
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
		s->reg[i] = f->x19_x28[i];
	s->reg[UW_REG_FP] = f->x29;
	s->reg[UW_REG_SP] = ag_frame_sp(f);
	for (int i = 6; i < 10; i++)
		s->reg[2 + i] = f->x19_x28[i];
	s->reg[UW_REG_LR] = f->return_address;
	s->reg[UW_REG_PC] = pc;
	s->valid = 0xfffu | 1u << UW_REG_LR | 1u << UW_REG_PC;
	s->exact_pc = true;
}

/* The frame pointer register at entry. */
static inline uint64_t ag_frame_fp(const struct ag_frame *f)
{
	return f->x29;
}

/* Calls the original mmap; its sixth argument is in the word below the frame. */
static inline uintptr_t ag_frame_mmap(const struct ag_frame *f, uintptr_t a0, uintptr_t a1,
				      uintptr_t a2, uintptr_t a3, uintptr_t a4)
{
	uintptr_t (*original)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) =
	    (void *)f->desc->original_addr;

	return original(a0, a1, a2, a3, a4, ((const uintptr_t *)f)[-1]);
}

/* Bytes that a call pushes. */
#define AG_RA_SIZE 0

static inline uint64_t ag_thread_pointer(void)
{
	uint64_t tp;

	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

/* The counter that the kernel lets programs read (CNTKCTL_EL1.EL0VCTEN, needed by its vDSO).  The
 * isb orders it after earlier loads: if another thread freed this block, that free has an earlier
 * time. */
static inline uint64_t ag_ticks(void)
{
	uint64_t now;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now) : : "memory");
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
	uint64_t now;
	uint32_t failed;

	__asm__ volatile("1:	ldxr	%0, %2\n"
			 "	cmp	%0, %3\n"
			 "	b.ne	2f\n"
			 "	stlxr	%w1, %4, %2\n"
			 "	cbnz	%w1, 1b\n"
			 "2:"
			 : "=&r"(now), "=&r"(failed), "+Q"(*p)
			 : "r"(old), "r"(new)
			 : "cc", "memory");
	return now == old;
}

/* Makes a system call for the agent.  The kernel preserves every register but x0. */
static inline long ag_raw_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#endif
