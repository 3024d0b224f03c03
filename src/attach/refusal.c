/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/refusal.h"

#include <errno.h>
#include <string.h>

static const char *const scope_text[] = {
    [1] = "kernel.yama.ptrace_scope is 1: without CAP_SYS_PTRACE only parents may attach; try "
	  "sudo, or: sysctl kernel.yama.ptrace_scope=0",
    [2] = "kernel.yama.ptrace_scope is 2: no process may attach without CAP_SYS_PTRACE; try sudo, "
	  "or: sysctl kernel.yama.ptrace_scope=0",
    [3] = "kernel.yama.ptrace_scope is 3: no process may attach to another until the next boot",
};

const char *refusal_of_scope(int scope)
{
	return scope >= 1 && scope <= 3 ? scope_text[scope] : NULL;
}

int refusal_explain(const struct refusal *r, struct mp_err *err)
{
	const struct proc_status *st = r->target;

	if (r->error == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, r->error, "process %d has ended", r->pid);
	if (r->error == -EMFILE)
		return mp_fail(err, MP_EXIT_NO_ROOM, r->error,
			       "cannot inspect process %d (%s): memprof cannot open more files "
			       "(RLIMIT_NOFILE)",
			       r->pid, st->name);
	if (r->error != -EPERM && r->error != -EACCES)
		return mp_fail(err, MP_EXIT_FAILURE, r->error, "cannot inspect process %d (%s): %s",
			       r->pid, st->name, strerror(-r->error));
	if (r->scope == 3)
		return mp_fail(err, MP_EXIT_PERMISSION, r->error, "%s", scope_text[3]);
	if (!r->may_ptrace && st->uid != r->uid)
		return mp_fail(err, MP_EXIT_PERMISSION, r->error,
			       "process %d (%s) belongs to uid %u and memprof runs as uid %u "
			       "without CAP_SYS_PTRACE; try: sudo memprof ...",
			       r->pid, st->name, st->uid, r->uid);
	if (!r->may_ptrace && (r->scope == 1 || r->scope == 2))
		return mp_fail(err, MP_EXIT_PERMISSION, r->error, "%s", scope_text[r->scope]);
	if (!r->may_ptrace)
		return mp_fail(err, MP_EXIT_PERMISSION, r->error,
			       "attaching to process %d (%s) is not permitted (it is not dumpable, "
			       "or a security module forbids it); try: sudo memprof ...",
			       r->pid, st->name);
	if (r->other_userns)
		return mp_fail(err, MP_EXIT_PERMISSION, r->error,
			       "process %d (%s) is in another user namespace, where memprof has no "
			       "CAP_SYS_PTRACE; run memprof as root of the host",
			       r->pid, st->name);
	return mp_fail(err, MP_EXIT_PERMISSION, r->error,
		       "attaching to process %d (%s) is not permitted: %s", r->pid, st->name,
		       strerror(-r->error));
}
