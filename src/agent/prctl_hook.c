/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The agent cannot know how a seccomp filter that was installed after the recorder's check treats
 * its system calls.  But a thread that installs one calls prctl() first, since without
 * CAP_SYS_ADMIN the kernel requires no_new_privs: from then on the agent makes no system calls.  A
 * filter that is installed without libc's prctl() is noticed by the recorder (attach/sandbox.h),
 * with a delay.
 */
#include "agent/call.h"

/* linux/prctl.h */
#define PR_SET_SECCOMP		     22
#define PR_SET_NO_NEW_PRIVS	     38
#define PR_SET_SYSCALL_USER_DISPATCH 59

AG_HOOK(ag_prctl)
{
	struct ag_call call;
	ag_word_t ret;

	/* First, because ag_begin() can make a system call. */
	if ((uint32_t)a0 == PR_SET_NO_NEW_PRIVS || (uint32_t)a0 == PR_SET_SECCOMP ||
	    (uint32_t)a0 == PR_SET_SYSCALL_USER_DISPATCH)
		__atomic_store_n(&ag_control()->may_syscall, 0, __ATOMIC_SEQ_CST);
	if (unlikely(!ag_begin(&call, f, false)))
		return AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = AG_ORIGINAL(f)(a0, a1, a2, a3, a4);
	ag_end(&call);
	return ret;
}
