/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The emergency frame: a signal frame on a thread's stack that restores the thread by rt_sigreturn
 * if memprof dies while the thread makes calls for it (attach/emergency.h). */
#ifndef ARCH_EMERGENCY_H
#define ARCH_EMERGENCY_H

#include "arch/code.h"
#include "arch/regs.h"

/* The state of a thread that an emergency frame restores. */
struct arch_emergency {
	const struct arch_regs *regs;
	long again; /* number of the interrupted system call, which is executed again; -1: none */
	uint64_t sigmask[2];
	const void *xstate; /* the register set regs.fp_regset */
	size_t xstate_size;
	uint64_t syscall_return; /* address of that code in the target */
	uint64_t sigreturn;
	uint8_t sigreturn_form; /* index in arch_emergency_ops.sigreturn[] */
};

struct arch_emergency_ops {
	/* Code that is in every libc or vDSO: a system call followed by a return, and ways to call
	 * rt_sigreturn, in order of preference (a restorer, or code that pops the number). */
	struct arch_code syscall_return, other_return, sigreturn[3];
	uint16_t frame_bytes; /* room for an emergency frame, without regs.fp_regset */

	/**
	 * build_frame() - build the frame that restores a thread whose registers are changed
	 *
	 * After set_return() with the stack at @at, the thread executes rt_sigreturn, which
	 * restores everything in @e.  An interrupted system call is executed again from its start.
	 * @out, @size: room for the frame, which will be at @at, an address aligned to 64
	 * Return: bytes used, 0 if @size does not suffice.
	 */
	size_t (*build_frame)(uint8_t *out, size_t size, uint64_t at,
			      const struct arch_emergency *e);
	/* Makes @regs execute the return of the syscall_return code at @code, with the stack at
	 * @frame and the link register, if there is one, at @sigreturn; nothing is restarted. */
	void (*set_return)(struct arch_regs *regs, uint64_t code, uint64_t frame,
			   uint64_t sigreturn);
};

#endif
