/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Explains why the kernel does not let memprof attach, and what would help. */
#ifndef ATTACH_REFUSAL_H
#define ATTACH_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/proc/procfs.h"
#include "lib/check.h"
#include "lib/err.h"

struct refusal {
	pid_t pid;
	const struct proc_status *target;
	int error;	   /* the negative errno that was returned */
	int scope;	   /* kernel.yama.ptrace_scope, 0 without yama (admin-guide/LSM/Yama) */
	uint32_t uid;	   /* memprof's */
	bool may_ptrace;   /* memprof has CAP_SYS_PTRACE in its user namespace */
	bool other_userns; /* the target is in another user namespace */
};

/* What kernel.yama.ptrace_scope @scope means for a memprof without CAP_SYS_PTRACE, and what would
 * help.  Return: NULL if it forbids nothing. */
const char *refusal_of_scope(int scope);

/* Return: r->error, with @err filled. */
__must_check int refusal_explain(const struct refusal *r, struct mp_err *err);

#endif
