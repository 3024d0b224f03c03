/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls: their numbers, what the registers of a stopped thread tell about the call that it
 * is in, and the registers with which a thread makes a call for memprof. */
#ifndef ARCH_SYSCALL_H
#define ARCH_SYSCALL_H

#include "arch/regs.h"

/* Linux system call numbers for injected calls and filters; -1: does not exist. */
struct arch_nr {
	int mmap, munmap, memfd_create, userfaultfd, close, madvise, ftruncate, gettid, getpid,
	    clone, wait4, prctl, exit, rt_sigprocmask, rt_sigreturn, sigaltstack, mprotect, munlock,
	    sched_yield, futex, shmctl, restart_syscall, process_vm_readv;
};

/* State of a stopped thread with respect to system calls. */
enum arch_syscall_state {
	ARCH_NOT_IN_SYSCALL,
	ARCH_IN_SYSCALL, /* interrupted; the kernel restarts it from the exact registers */
};

struct arch_syscall_ops {
	uint32_t audit_arch; /* AUDIT_ARCH_*, as seccomp filters see it */
	uint8_t insn_length; /* bytes of the system call instruction */
	uint8_t sigset_size; /* bytes of the kernel's sigset_t */

	enum arch_syscall_state (*state)(const struct arch_regs *regs);
	/* For architectures where the kernel prepares the restart of an interrupted call before a
	 * tracer can see it: are @regs of a thread that is about to make a call?  @code: its next
	 * @n bytes of code.  NULL: state() shows it. */
	bool (*before)(const struct arch_regs *regs, const uint8_t *code, size_t n);
	/* Number of the system call the thread is in, if ARCH_IN_SYSCALL or before(). */
	long (*number)(const struct arch_regs *regs);
	/* Makes @regs execute system call @nr with @args at the system call instruction at @pc, and
	 * prevents the kernel from restarting the interrupted call. */
	void (*set)(struct arch_regs *regs, uint64_t pc, long nr, const uint64_t args[6]);
	long (*result)(const struct arch_regs *regs); /* value or -errno */
};

#endif
