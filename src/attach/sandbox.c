/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/sandbox.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <unistd.h>
#include "attach/check.h"
#include "attach/seccomp.h"
#include "formats/session.h"

#define CAP_SYS_ADMIN 21
#define LOOKS	      16 /* threads that one sandbox_has_grown() checks */
#define FD	      3	 /* an arbitrary number: filters hardly ever check it */

struct call {
	const char *name;
	int nr;
	uint32_t agent; /* SS_MAY_* that it is needed for; 0: memprof itself needs it */
	uint64_t args[6];
};

int sandbox_look(const struct target *t, struct mp_err *err)
{
	struct proc_status self = {0}, st;
	struct tids tids;
	bool filters = false;
	pid_t strict = 0;

	if (proc_status_read(getpid(), 0, &self) || proc_tasks(t->pid, &tids))
		return check_over(t, err);
	vec_for_each (&tids.list, tid) {
		if (proc_status_read(t->pid, *tid, &st))
			continue;
		filters |= st.seccomp == SECCOMP_MODE_FILTER;
		if (st.seccomp == SECCOMP_MODE_STRICT)
			strict = *tid;
	}
	vec_free(&tids.list);
	if (strict)
		return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
			       "thread %d of process %d (%s) is in strict seccomp mode, which does "
			       "not allow mmap; nothing was touched",
			       strict, t->pid, t->status.name);
	if (filters && !(self.cap_effective >> CAP_SYS_ADMIN & 1))
		return mp_fail(
		    err, MP_EXIT_SECCOMP, -EPERM,
		    "process %d (%s) has a seccomp filter, which memprof may read only with "
		    "CAP_SYS_ADMIN: mmap could kill the process; nothing was touched",
		    t->pid, t->status.name);
	if (filters && self.seccomp)
		return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
			       "process %d (%s) has a seccomp filter, which memprof may not read "
			       "because memprof runs under a filter itself: mmap could kill the "
			       "process; nothing was touched",
			       t->pid, t->status.name);
	return 0;
}

static int ask_filter(struct target *t, struct thread *th, const struct call *c,
		      uint32_t *agent_may, struct mp_err *err)
{
	int allowed = c->nr < 0 ? 1 : seccomp_allows(t, th, c->nr, c->args, t->code.syscall_return);

	if (allowed > 0 || allowed == -ESRCH)
		return 0;
	if (c->agent) {
		*agent_may &= ~c->agent;
		return 0;
	}
	return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
		       allowed ? "process %d has a seccomp filter that cannot be read, so %s could "
				 "kill it; nothing was touched"
			       : "the seccomp filter of process %d does not allow %s; nothing was "
				 "touched",
		       t->pid, c->name);
}

bool sandbox_agent_calls(const struct target *t)
{
	vec_for_each (&t->threads, it) {
		if (seccomp_dispatch(t, *it) != DISPATCH_KERNEL)
			return false;
	}
	return true;
}

static void note_filters(struct target *t, const struct thread *th)
{
	struct proc_status st;

	if (!proc_status_read(t->pid, th->tid, &st) && st.filters > t->filters_asked)
		t->filters_asked = st.filters;
}

int sandbox_ask(struct target *t, uint64_t length, uint64_t agent, uint64_t agent_length,
		uint64_t private_length, uint32_t *agent_may, struct mp_err *err)
{
	const uint64_t ours = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, none = UINT64_MAX;
	const struct call call[] = {
	    {"mmap", t->arch->nr.mmap, 0, {0, length, PROT_NONE, MAP_SHARED | MAP_NORESERVE, FD}},
	    {"mprotect", t->arch->nr.mprotect, 0, {agent, length, PROT_READ | PROT_WRITE}},
	    {"mmap of executable memory",
	     t->arch->nr.mmap,
	     0,
	     {agent, agent_length, PROT_READ | PROT_EXEC, ours, none}},
	    {"mmap",
	     t->arch->nr.mmap,
	     0,
	     {agent + agent_length, private_length, PROT_READ | PROT_WRITE, ours, none}},
	    {"munmap", t->arch->nr.munmap, 0, {agent, length}},
	    {"memfd_create", t->arch->nr.memfd_create, 0, {agent, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	    {"madvise", t->arch->nr.madvise, 0, {agent, SS_GATE_BYTES, MADV_WIPEONFORK}},
	    {"madvise", t->arch->nr.madvise, 0, {agent, SS_GATE_BYTES, MADV_DONTNEED}},
	    {"madvise", t->arch->nr.madvise, 0, {agent, length, MADV_DONTDUMP}},
	    {"close", t->arch->nr.close, 0, {FD}},
	    {"rt_sigreturn", t->arch->nr.rt_sigreturn, 0, {0}},
	    {"restart_syscall", t->arch->nr.restart_syscall, 0, {0}},
	    {"munlock", t->status.vm_locked_kb ? t->arch->nr.munlock : -1, 0, {agent, length}},
	    {"rt_sigprocmask", t->arch->nr.rt_sigprocmask, SS_MAY_ALL, {0}},
	    {"sched_yield", t->arch->nr.sched_yield, SS_MAY_ALL, {0}},
	    {"shmctl", t->arch->nr.shmctl, SS_MAY_ALL, {0}},
	    {"gettid", t->arch->nr.gettid, SS_MAY_ALL, {0}},
	    {"futex", t->arch->nr.futex, SS_MAY_ALL, {0}},
	    {"process_vm_readv", t->arch->nr.process_vm_readv, SS_MAY_COPY, {0}},
	};
	int ret = 0;

	*agent_may = SS_MAY_ALL;
	for (size_t k = 0; k < t->threads.n; k++) {
		for (size_t i = 0; i < sizeof(call) / sizeof(call[0]) && !ret; i++)
			ret = ask_filter(t, t->threads.at[k], &call[i], agent_may, err);
		note_filters(t, t->threads.at[k]);
	}
	return ret;
}

bool sandbox_has_grown(const struct target *t, uint32_t *looked_at)
{
	struct proc_status st;
	struct tids tids;
	bool newer = false;

	if (proc_tasks(t->pid, &tids))
		return false;
	for (size_t i = 0; i < LOOKS && i < tids.list.n && !newer; i++) {
		pid_t tid = tids.list.at[(*looked_at)++ % tids.list.n];

		/* Kernels before 5.9 do not report the number of filters. */
		newer = !proc_status_read(t->pid, tid, &st) && st.seccomp &&
			(st.seccomp == SECCOMP_MODE_STRICT || !t->status.seccomp ||
			 st.filters > t->filters_asked);
	}
	vec_free(&tids.list);
	return newer;
}
