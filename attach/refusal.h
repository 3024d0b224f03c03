/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why the kernel does not let us attach, in words that help. */
#ifndef ATTACH_REFUSAL_H
#define ATTACH_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/procfs.h"
#include "lib/check.h"
#include "lib/err.h"

struct refusal {
	pid_t pid;
	const struct proc_status *target;
	int error;	   /* the negative errno that was met */
	int scope;	   /* kernel.yama.ptrace_scope, 0 without yama (admin-guide/LSM/Yama) */
	uint32_t uid;	   /* ours */
	bool may_ptrace;   /* we have CAP_SYS_PTRACE in our user namespace */
	bool other_userns; /* the target is in another one */
};

/* Return: r->error, with @err filled. */
__must_check int refusal_explain(const struct refusal *r, struct mp_err *err);

#endif
