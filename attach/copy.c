/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/copy.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/remains.h"
#include "lib/fault.h"

/*
 * Stack pointer of the copy.  Should it ever run (memprof killed within the microseconds before
 * PTRACE_O_EXITKILL is set), its first access to the stack faults, and since all signals are
 * blocked the kernel ends it without a handler of the service.
 */
#define NO_STACK 8u

/* Page tables of a large process on a busy machine; the kernel does not give up in the middle. */
#define CLONE_MS 60000

static const uint64_t clone_args[6] = {CLONE_FILES, NO_STACK};

static int check_seccomp(struct remote *r, struct mp_err *err)
{
	struct target *t = r->t;
	int clone, wait;

	if (!t->status.seccomp)
		return 0;
	clone =
	    seccomp_allows(t, r->carrier, t->arch->nr.clone, clone_args, t->code.syscall_return);
	wait = seccomp_allows(t, r->carrier, t->arch->nr.wait4, NULL, t->code.syscall_return);
	if (clone == 1 && wait == 1)
		return 0;
	if (clone < 0 || wait < 0)
		return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
			       "the seccomp filters of process %d cannot be read (CAP_SYS_ADMIN is "
			       "needed), so it cannot be asked to copy itself; --in-place works "
			       "without",
			       t->pid);
	return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
		       "a seccomp filter of process %d forbids it %s(); --in-place works without",
		       t->pid, clone ? "wait4" : "clone");
}

/* A copy whose birth the kernel did not tell us about: runs.  Found among the target's children by
 * the number that the target got. */
static void kill_escaped(const struct target *t, pid_t ns_pid)
{
	struct tids children;

	if (proc_children(t->pid, &children))
		return;
	vec_for_each (&children.list, child) {
		struct proc_status st;

		if (!proc_status_read(*child, 0, &st) && st.ns_pid == ns_pid)
			kill(*child, SIGKILL);
	}
	vec_free(&children.list);
}

/* Waits until the copy stands in its first stop.  Return: 0 or -errno. */
static int wait_born(pid_t pid)
{
	struct deadline deadline = deadline_in_ms(2000);
	int status;

	while (!deadline_passed(&deadline)) {
		pid_t got = waitpid(pid, &status, __WALL | WNOHANG);

		if (got == pid)
			return WIFSTOPPED(status) ? 0 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -errno;
		usleep(20);
	}
	return -ETIMEDOUT;
}

static int refused(const struct target *t, int error, struct mp_err *err)
{
	if (error == -ENOMEM)
		return mp_fail(err, MP_EXIT_FAILURE, error,
			       "the kernel has no memory for a copy of process %d (overcommit or "
			       "its memory cgroup forbids it); it was left alone",
			       t->pid);
	if (error == -EAGAIN)
		return mp_fail(err, MP_EXIT_FAILURE, error,
			       "process %d may not have another child (pids.max or RLIMIT_NPROC); "
			       "it was left alone",
			       t->pid);
	if (error == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, error, "process %d has ended", t->pid);
	return mp_fail(err, MP_EXIT_FAILURE, error, "process %d cannot be copied: %s", t->pid,
		       strerror(-error));
}

int copy_make(struct copy *c, struct target *t, struct mp_err *err)
{
	struct remote r;
	long result = 0;
	int ret;

	memset(c, 0, sizeof(*c));
	ret = remote_begin(&r, t, err);
	if (ret)
		return ret;
	ret = check_seccomp(&r, err);
	if (!ret) {
		r.event_message = 0;
		r.wait_ms = CLONE_MS;
		ret = remote_syscall(&r, t->arch->nr.clone, clone_args, &result);
		if (ret || result < 0)
			ret = refused(t, ret ? ret : (int)result, err);
	}
	if (r.event_message) {
		c->pid = (pid_t)r.event_message;
		c->ns_pid = (pid_t)result;
		fault_point("copy-born");
		if (wait_born(c->pid) || ptrace(PTRACE_SETOPTIONS, c->pid, 0, PTRACE_O_EXITKILL)) {
			copy_kill(c);
			ret = refused(t, -EIO, err);
		}
		fault_point("copy-held");
	} else if (result > 0) {
		kill_escaped(t, (pid_t)result);
		ret = refused(t, -EIO, err);
	}
	fault_point("copy-made");
	if (remote_end(&r) && !ret)
		ret = mp_fail(err, MP_EXIT_FAILURE, -EIO,
			      "a thread of process %d could not be put back", t->pid);
	if (ret && c->pid)
		copy_kill(c);
	return ret;
}

void copy_kill(struct copy *c)
{
	int status;

	if (!c->pid || c->dead)
		return;
	kill(c->pid, SIGKILL);
	for (;;) {
		pid_t got = waitpid(c->pid, &status, __WALL);

		if (got == c->pid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, c->pid, 0, 0);
		else if (got == c->pid || errno != EINTR)
			break;
	}
	c->dead = true;
}

/* Return: 0, or a negative errno with @err. */
static int reap_one(struct remote *r, pid_t ns_pid, struct mp_err *err)
{
	uint64_t args[6] = {(uint64_t)ns_pid, 0, WNOHANG | __WALL};
	pid_t pid = r->t->pid;
	long result = 0;
	int ret = remote_syscall(r, r->t->arch->nr.wait4, args, &result);

	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "process %d could not be asked to wait for its copy", pid);
	/* Somebody in the target that waits for everything (__WALL) was faster: gone as well. */
	if (result == ns_pid || result == -ECHILD)
		return 0;
	return mp_fail(err, MP_EXIT_FAILURE, -EIO,
		       "the copy of process %d is still there as zombie %d (in its own numbers)",
		       pid, ns_pid);
}

int copy_reap(struct copy *c, struct target *t, struct mp_err *err)
{
	struct remains others = {0};
	struct remote r;
	int ret, end;

	ret = remote_begin(&r, t, err);
	if (ret)
		return ret;
	if (c->pid)
		ret = reap_one(&r, c->ns_pid, err);
	if (!ret && !remains_find(t->pid, &others)) {
		vec_for_each (&others.dead.list, ns_pid)
			ret = ret ? ret : reap_one(&r, *ns_pid, err);
		remains_free(&others);
	}
	end = remote_end(&r);
	if (!ret && end)
		ret = mp_fail(err, MP_EXIT_FAILURE, end,
			      "a thread of process %d could not be put back", t->pid);
	if (!ret)
		memset(c, 0, sizeof(*c));
	return ret;
}
