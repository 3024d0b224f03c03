/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/copy.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/remains.h"
#include "lib/fault.h"

/*
 * Stack pointer of the copy.  If the copy ever runs (memprof was killed within the microseconds
 * before PTRACE_O_EXITKILL is set), its first access to the stack faults.  Since all signals are
 * blocked, the kernel kills it without running a handler of the program.
 */
#define NO_STACK 8u

/* Copying the page tables of a large process on a busy machine; the kernel does not give up in
 * between. */
#define CLONE_MS 60000
#define STOP_MS	 2000
#define WAIT_US	 20 /* it usually stops sooner */
/* If not, it may be waiting for the processor. */
#define LONG_WAIT_US 500
#define SHORT_WAITS  100

static const uint64_t clone_args[6] = {CLONE_FILES, NO_STACK};
/* The copy's own child: no page tables are copied again. */
static const uint64_t heir_args[6] = {CLONE_VM | CLONE_FILES, NO_STACK};

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
		return mp_fail(
		    err, MP_EXIT_SECCOMP, -EPERM,
		    "the seccomp filters of process %d cannot be read (needs CAP_SYS_ADMIN), so "
		    "memprof does not copy it; --in-place needs no copy",
		    t->pid);
	return mp_fail(err, MP_EXIT_SECCOMP, -EPERM,
		       "a seccomp filter of process %d forbids %s(), which a copy needs; "
		       "--in-place needs no copy",
		       t->pid, clone ? "wait4" : "clone");
}

static void end_copy(pid_t pid)
{
	int status;

	/* For another user's process kill() needs CAP_KILL, which memprof may not have.  A tracer
	 * needs no permission. */
	if (kill(pid, SIGKILL))
		ptrace(PTRACE_KILL, pid, 0, 0);
	for (;;) {
		pid_t got = waitpid(pid, &status, __WALL);

		if (got == pid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, 0);
		else if (got == pid || errno != EINTR)
			break;
	}
}

/* Kills a copy whose birth the kernel did not report by an event: it is either traced and stopped
 * as usual, or runs.  It is found among the target's children by the pid that clone() returned to
 * the target. */
static void kill_escaped(const struct target *t, pid_t ns_pid)
{
	struct tids children;

	if (proc_children(t->pid, &children))
		return;
	vec_for_each (&children.list, child) {
		struct proc_status st;

		if (!proc_status_read(*child, 0, &st) && st.ns_pid == ns_pid)
			end_copy(*child);
	}
	vec_free(&children.list);
}

/* Return: the wait status of the next stop, or -errno; -ESRCH if the process died. */
static int wait_stop(pid_t pid)
{
	struct deadline deadline = deadline_in_ms(STOP_MS);
	int status;

	for (uint32_t i = 0; !deadline_passed(&deadline); i++) {
		pid_t got = waitpid(pid, &status, __WALL | WNOHANG);

		if (got == pid)
			return WIFSTOPPED(status) ? status : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -errno;
		usleep(i < SHORT_WAITS ? WAIT_US : LONG_WAIT_US);
	}
	return -ETIMEDOUT;
}

/* The target stays stopped until the copy stops: on a busy machine this avoids a long wait. */
static void raise_priority(pid_t pid)
{
	struct sched_param first = {.sched_priority = 1};

	sched_setscheduler(pid, SCHED_FIFO, &first);
}

/* Back to normal priority, because the exit of a large process would keep a processor from all
 * others. */
static void lower_priority(pid_t pid)
{
	struct sched_param none = {0};

	sched_setscheduler(pid, SCHED_OTHER, &none);
}

/* Waits until a traced newborn process has stopped.  Return: whether it has, and the kernel will
 * kill it if memprof dies. */
static bool hold(pid_t pid)
{
	raise_priority(pid);
	return wait_stop(pid) >= 0 &&
	       !ptrace(PTRACE_SETOPTIONS, pid, 0,
		       PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD);
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
			       "process %d cannot create another process (pids.max or "
			       "RLIMIT_NPROC); it was left alone",
			       t->pid);
	if (error == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, error, "process %d has ended", t->pid);
	return mp_fail(err, MP_EXIT_FAILURE, error, "process %d cannot be copied: %s", t->pid,
		       strerror(-error));
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
			       "process %d could not be made to reap its copy", pid);
	/* A wait() of the target with __WALL can have reaped the copy already. */
	if (result == ns_pid || result == -ECHILD)
		return 0;
	return mp_fail(err, MP_EXIT_FAILURE, -EIO,
		       "the copy of process %d remains as a zombie, pid %d in the pid namespace of "
		       "that process",
		       pid, ns_pid);
}

/* Is the target a subreaper?  Assumed to be one if its filters forbid the query. */
static bool is_subreaper(struct remote *r)
{
	uint64_t args[6] = {PR_GET_CHILD_SUBREAPER, remote_string(r, "yes?")};
	const struct target *t = r->t;
	int32_t yes = 1;
	long result = 0;

	if (!args[1] || (t->status.seccomp && seccomp_allows(r->t, r->carrier, t->arch->nr.prctl,
							     args, t->code.syscall_return) != 1))
		return true;
	return remote_syscall(r, t->arch->nr.prctl, args, &result) || result ||
	       mem_read(&t->mem, args[1], &yes, sizeof(yes)) || yes;
}

static bool may_hand_over(struct remote *r)
{
	const struct target *t = r->t;

	return (!t->status.seccomp || seccomp_allows(r->t, r->carrier, t->arch->nr.clone, heir_args,
						     t->code.syscall_return) == 1) &&
	       !is_subreaper(r);
}

/* Lets the copy run for one instruction, the only time it runs: a clone() of its own.  Return: the
 * pid of its child, traced and stopped like the copy itself, or 0. */
static pid_t make_heir(struct target *t, pid_t pid)
{
	struct thread th = {.tid = pid, .state = THREAD_STOPPED};
	unsigned long heir = 0;
	struct arch_regs regs;

	if (thread_get_regs(t, &th))
		return 0;
	regs = th.regs;
	t->arch->syscall.set(&regs, t->code.syscall_return, t->arch->nr.clone, heir_args);
	if (thread_put_regs(t, &th, &regs))
		return 0;
	/* First stop: the entry of the call.  Second: the birth or, if there is none, the exit. */
	for (int stop = 0; stop < 2; stop++) {
		int status = ptrace(PTRACE_SYSCALL, pid, 0, 0) ? -errno : wait_stop(pid);

		if (status >= 0 && status >> 16 == PTRACE_EVENT_CLONE)
			ptrace(PTRACE_GETEVENTMSG, pid, 0, &heir);
		else if (status < 0 || WSTOPSIG(status) != (SIGTRAP | 0x80))
			break;
	}
	fault_point("copy-heir");
	if (heir && !hold((pid_t)heir)) {
		end_copy((pid_t)heir);
		return 0;
	}
	return (pid_t)heir;
}

/* If the kernel refuses (the limit on processes may be reached), the copy remains as it is. */
static int hand_over(struct copy *c, struct remote *r, struct mp_err *err)
{
	pid_t heir = make_heir(r->t, c->pid), maker = c->ns_pid;
	struct proc_status st;
	int ret;

	if (!heir)
		return 0;
	end_copy(c->pid);
	fault_point("copy-orphaned");
	c->pid = heir;
	ret = reap_one(r, maker, err);
	if (!ret && proc_status_read(heir, 0, &st))
		ret = refused(r->t, -EIO, err);
	if (!ret)
		c->ns_pid = st.ns_pid;
	/* If only one thread of several is stopped (target_seize_one()), another one can have made
	 * the target a subreaper in the meantime. */
	c->orphan = ret || st.ppid != r->t->pid;
	return ret;
}

/* Return: 0 with the target's child in @c, or a negative errno with @err; in that case @c can
 * contain a dead copy. */
static int make_child(struct copy *c, struct remote *r, struct mp_err *err)
{
	const struct target *t = r->t;
	long result = 0;
	int ret;

	r->event_message = 0;
	r->wait_ms = CLONE_MS;
	ret = remote_syscall(r, t->arch->nr.clone, clone_args, &result);
	if (ret || result < 0)
		ret = refused(t, ret ? ret : (int)result, err);
	if (r->event_message) {
		struct proc_status st;

		c->pid = (pid_t)r->event_message;
		/* A call that was abandoned has no result. */
		c->ns_pid = !ret				? (pid_t)result
			    : !proc_status_read(c->pid, 0, &st) ? st.ns_pid
								: 0;
		fault_point("copy-born");
		if (!hold(c->pid)) {
			copy_kill(c);
			ret = refused(t, -EIO, err);
		}
		fault_point("copy-held");
	} else if (result > 0) {
		kill_escaped(t, (pid_t)result);
		ret = refused(t, -EIO, err);
	}
	return ret;
}

int copy_stop(struct target *t, bool gentle, const struct deadline *deadline, struct mp_err *err)
{
	int ret = gentle ? target_seize_one(t, err) : target_seize(t, deadline, err);

	return ret ? ret : target_stop(t, deadline, err);
}

int copy_make(struct copy *c, struct target *t, bool orphan, struct mp_err *err)
{
	struct remote r;
	int ret;

	memset(c, 0, sizeof(*c));
	ret = remote_begin(&r, t, err);
	if (ret)
		return ret;
	ret = check_seccomp(&r, err);
	orphan = !ret && orphan && may_hand_over(&r);
	if (!ret)
		ret = make_child(c, &r, err);
	if (!ret && orphan)
		ret = hand_over(c, &r, err);
	if (c->pid)
		lower_priority(c->pid);
	fault_point("copy-made");
	if (ret && c->pid) {
		copy_kill(c);
		if (!c->orphan && c->ns_pid > 0)
			reap_one(&r, c->ns_pid, NULL);
	}
	if (remote_end(&r) && !ret)
		ret = mp_fail(err, MP_EXIT_FAILURE, -EIO,
			      "the registers of a thread of process %d could not be restored",
			      t->pid);
	if (ret && c->pid)
		copy_kill(c);
	return ret;
}

void copy_kill(struct copy *c)
{
	if (!c->pid || c->dead)
		return;
	end_copy(c->pid);
	c->dead = true;
}

int copy_reap(struct copy *c, struct target *t, struct mp_err *err)
{
	struct remains others = {0};
	struct remote r;
	int ret, back;

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
	back = remote_end(&r);
	if (!ret && back)
		ret = mp_fail(err, MP_EXIT_FAILURE, back,
			      "the registers of a thread of process %d could not be restored",
			      t->pid);
	if (!ret)
		memset(c, 0, sizeof(*c));
	return ret;
}
