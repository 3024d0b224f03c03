/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interrupted system calls: memprof stops threads in calls that the kernel does not restart, or not
 * in the same way, and makes them repeat these calls (attach/restart.h). */
#ifndef ARCH_RESTART_H
#define ARCH_RESTART_H

#include <stddef.h>
#include "arch/regs.h"

struct arch_restart_ops {
	/* The ptrace request (PTRACE_SET_SYSCALL) that changes a call's number at its entry, if
	 * restart_syscall replaces an interrupted call but leaves that call's number in the
	 * registers; 0: not so. */
	uint32_t change_number;
	/* If the result of such a call has replaced its first argument (first in arch_regs.raw):
	 * the register set with the number of the call (NT_ARM_SYSTEM_CALL).  0: the registers are
	 * complete. */
	uint32_t call_regset;
	/* With syscall.before(): sets another number for the call that @regs are about to make.
	 * The kernel's copy is set by call_regset or change_number. */
	void (*set_number)(struct arch_regs *regs, long nr);
	/* If @regs are of an interrupted wait with a timeout, makes it begin again with its full
	 * time instead of continuing by restart_syscall.  Return: whether they are.  NULL with
	 * syscall.before(): set_number() is used there. */
	bool (*whole)(struct arch_regs *regs);
	/* Some calls fail with EINTR when a thread is stopped, without any signal (signal(7),
	 * "Interruption of system calls ... by stop signals").  If @regs are of such a call, makes
	 * the thread repeat it, unless a handler runs.  Return: whether @regs were changed. */
	bool (*interrupted)(struct arch_regs *regs);
	/* Return: the descriptor of a recvmmsg() that ended with fewer messages than were
	 * requested; -1: @regs show no such call.  NULL: the registers of a finished call do not
	 * show it. */
	int (*received_less)(const struct arch_regs *regs);
	/* Return: which call is restarted in a thread in restart_syscall, according to the @n bytes
	 * of code that end with its system call instruction; -1: not visible. */
	long (*restarted_number)(const uint8_t *code, size_t n);
};

/* Return: whether @number is one of the @n in @list. */
static inline bool arch_restart_lists(const uint16_t *list, size_t n, uint64_t number)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i] == number)
			return true;
	}
	return false;
}

#endif
