/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Nothing tells the agent what a seccomp filter does to its system calls that was installed after
 * the recorder asked.  But who installs one calls prctl() before, for without CAP_SYS_ADMIN the
 * kernel wants no_new_privs first: from then on the agent makes no system calls.  Those that get
 * around libc's prctl() are seen by the recorder (inject/sandbox.h), later.
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

	/* First: begin() may make one. */
	if ((uint32_t)a0 == PR_SET_NO_NEW_PRIVS || (uint32_t)a0 == PR_SET_SECCOMP ||
	    (uint32_t)a0 == PR_SET_SYSCALL_USER_DISPATCH)
		__atomic_store_n(&control()->may_syscall, 0, __ATOMIC_SEQ_CST);
	if (unlikely(!begin(&call, f, false)))
		return ORIGINAL(f)(a0, a1, a2, a3, a4);
	ret = ORIGINAL(f)(a0, a1, a2, a3, a4);
	end(&call);
	return ret;
}
