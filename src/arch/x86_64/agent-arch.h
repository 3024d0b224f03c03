/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The architecture's part of the agent.  Freestanding. */
#ifndef ARCH_X86_64_AGENT_ARCH_H
#define ARCH_X86_64_AGENT_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"
#include "unwind/step.h"

#define AG_NR_MUNMAP	       11
#define AG_NR_RT_SIGPROCMASK   14
#define AG_NR_SCHED_YIELD      24
#define AG_NR_SHMCTL	       31
#define AG_NR_GETTID	       186
#define AG_NR_FUTEX	       202
#define AG_NR_PROCESS_VM_READV 310
#define AG_SIGSET_BYTES	       8 /* the kernel's sigset_t */
#define AG_IPC_64	       0 /* flag of shmctl's command for the current structure */

/* Registers at the entry of a hooked function; built by agent-entry.S. */
struct ag_frame {
	const struct ss_desc *desc;
	uint64_t rbx, rbp, r12, r13, r14, r15;
	uint64_t return_address;
};

/* The stack pointer at entry: the address of the return address. */
static inline uint64_t ag_frame_sp(const struct ag_frame *f)
{
	return (uint64_t)&f->return_address;
}

/* Address of the return address of the function that was entered. */
static inline uint64_t ag_frame_ra_at(const struct ag_frame *f)
{
	return ag_frame_sp(f);
}

/* Registers at the entry of the function, by column. */
static inline void ag_frame_state(const struct ag_frame *f, uint64_t pc, struct uw_state *s)
{
	s->reg[3] = f->rbx;
	s->reg[6] = f->rbp;
	s->reg[7] = ag_frame_sp(f);
	s->reg[12] = f->r12;
	s->reg[13] = f->r13;
	s->reg[14] = f->r14;
	s->reg[15] = f->r15;
	s->reg[16] = pc;
	s->valid = 1u << 3 | 1u << 6 | 1u << 7 | 0xfu << 12 | 1u << 16;
	s->exact_pc = true;
}

/* The frame pointer register at entry. */
static inline uint64_t ag_frame_fp(const struct ag_frame *f)
{
	return f->rbp;
}

/* Bytes that a call pushes: distance from the stack pointer at entry to the CFA. */
#define AG_RA_SIZE 8

/* Calls the original mmap; the sixth argument is below the frame (agent-entry.S). */
static inline uintptr_t ag_frame_mmap(const struct ag_frame *f, uintptr_t a0, uintptr_t a1,
				      uintptr_t a2, uintptr_t a3, uintptr_t a4)
{
	uintptr_t (*original)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) =
	    (uintptr_t(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			  uintptr_t))f->desc->original_addr;

	return original(a0, a1, a2, a3, a4, ((const uintptr_t *)f)[-1]);
}

/*
 * The address of the thread control block, which glibc and musl keep at its start.  A thread that
 * allocates has one: the allocators of these libraries use it themselves.
 */
static inline uint64_t ag_thread_pointer(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* The compiler keeps its order among memory accesses; the processor can reorder it. */
static inline uint64_t ag_ticks(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (uint64_t)hi << 32 | lo;
}

/* The time at which a block ends.  The lfence orders it after the load that got the block's address
 * from another thread: that thread's allocation has an earlier time. */
static inline uint64_t ag_ticks_of_end(void)
{
	__asm__ volatile("lfence" : : : "memory");
	return ag_ticks();
}

/* Fills @n bytes at @at with zeros. */
#define AG_ZERO_BYTES(at, n) __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(0) : "memory")

static inline void ag_cpu_pause(void)
{
	__asm__ volatile("pause");
}

/*
 * Compare and swap that is atomic only against signals of this thread: one instruction without the
 * lock prefix.
 */
static inline bool ag_cas_local(uint64_t *p, uint64_t old, uint64_t new)
{
	bool done;

	__asm__ volatile("cmpxchg %3, %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(old)
			 : "r"(new)
			 : "memory");
	return done;
}

/* Makes a system call for the agent.  The kernel preserves every register but rax, rcx and r11. */
static inline long ag_raw_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
