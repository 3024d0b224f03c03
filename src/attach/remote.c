/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls executed by one thread of the target, the carrier.  No byte of text is written and
 * no trap instruction is used: the thread's registers are pointed at an existing system call
 * instruction, and ptrace stops the thread at the entry and exit of the call.
 *
 * At the end the carrier is brought to a PTRACE_INTERRUPT stop again before its registers are
 * restored: only from such a stop does the kernel finish an interrupted system call itself, with
 * the time that was left (attach/events.c, thread_digest()).
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/emergency.h"
#include "attach/restart.h"
#include "attach/seccomp.h"
#include "attach/target.h"
#include "attach/threads.h"
#include "lib/fault.h"
#include "attach/steps.h"

#define RSEQ_CS_OFFSET 8 /* struct rseq, uapi linux/rseq.h */
#define WAIT_MS	       2000
#define LOOK_US	       200
#define WAIT_US	       20  /* a system call usually needs less */
#define LONG_WAIT_US   500 /* if it needs more: the thread may be waiting for the processor */
#define SHORT_WAITS    100
#define LOOKS	       64 /* waits between two checks whether the carrier is alive */
#define STRING_MAX     200
#define ENOUGH	       64 /* threads that are examined if all are in system calls */

/* Lower is better.  The kernel would restore an interrupted call exactly, but there is no need to
 * rely on it.  NO_ROOM: the stack is nearly full, or that of a goroutine or fiber. */
enum rank { USER_MODE, IN_SYSCALL, NO_ROOM, WORST = 2 * NO_ROOM };

/* uapi linux/rseq.h */
struct rseq_section {
	uint32_t version, flags;
	uint64_t start, length, abort_addr;
};

/*
 * A thread that was interrupted in a restartable sequence will be sent to the abort handler of that
 * sequence by the kernel.  The kernel forgets this if it sees other registers in between.  So the
 * saved registers are set as the kernel would have set them.
 */
static void abort_rseq(struct remote *r)
{
	struct __ptrace_rseq_configuration conf;
	uint64_t at = 0, pc = r->t->arch->regs.get_pc(&r->saved);
	struct rseq_section cs;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->carrier->tid, sizeof(conf), &conf) <= 0 ||
	    !conf.rseq_abi_pointer ||
	    mem_read(&r->t->mem, conf.rseq_abi_pointer + RSEQ_CS_OFFSET, &at, sizeof(at)) || !at ||
	    mem_read(&r->t->mem, at, &cs, sizeof(cs)))
		return;
	if (pc - cs.start < cs.length)
		r->t->arch->regs.set_pc(&r->saved, cs.abort_addr);
}

static int rank(struct target *t, struct thread *th)
{
	if (thread_get_regs(t, th) || seccomp_dispatch(t, th) == DISPATCH_SIGNAL)
		return -1;
	if (thread_stands_before(t, th) >= 0) {
		/* The kernel can restart the call at this instruction: unsuitable for injected
		 * calls. */
		return t->arch->regs.get_pc(&th->regs) == t->code.syscall_return ? -1 : IN_SYSCALL;
	}
	return t->arch->syscall.state(&th->regs) == ARCH_IN_SYSCALL ? IN_SYSCALL : USER_MODE;
}

static bool on_own_stack(const struct target *t, const struct thread *th, const struct maps *maps)
{
	return thread_owns_stack(t, th, maps, t->arch->regs.get_sp(&th->regs));
}

static void choose_carrier(struct remote *r)
{
	int best = WORST, looked_at = 0;
	const struct maps *maps;

	if (target_maps(r->t, &maps))
		return;
	vec_for_each (&r->t->threads, it) {
		int score = rank(r->t, *it);
		bool own = score >= 0 && on_own_stack(r->t, *it, maps);

		/* Below the stack of a goroutine or a fiber can be memory that other threads use:
		 * those must be stopped, too. */
		if (score < 0 || (!own && r->t->some_only))
			continue;
		score += own && emergency_room(r->t, maps, *it) ? 0 : NO_ROOM;
		if (score < best) {
			best = score;
			r->carrier = *it;
		}
		if (best == USER_MODE || (best == IN_SYSCALL && ++looked_at == ENOUGH))
			break;
	}
}

static int park(struct remote *r)
{
	struct arch_regs regs = r->saved;

	r->t->arch->emergency.set_return(&regs, r->t->code.syscall_return,
					 r->frame - r->t->code.return_pops, r->t->code.sigreturn);
	return thread_put_regs(r->t, r->carrier, &regs);
}

static int wait_stop(struct remote *r);

enum entry { ENTRY_LOOK, ENTRY_GO_ON };

/* At the entry of a call whose number the registers do not show: finds out whether it is
 * restart_syscall, or changes it to that. */
static int look_at_entry(struct remote *r, enum entry entry)
{
	const struct arch *arch = r->t->arch;
	pid_t tid = r->carrier->tid;
	struct __ptrace_syscall_info info;

	if (entry == ENTRY_GO_ON)
		return ptrace((enum __ptrace_request)arch->restart.change_number, tid, NULL,
			      arch->nr.restart_syscall)
			   ? -1
			   : 0;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0)
		return -1;
	r->goes_on =
	    info.op == PTRACE_SYSCALL_INFO_ENTRY && (long)info.entry.nr == arch->nr.restart_syscall;
	return 0;
}

/* Lets the thread enter the call that it is about to execute, and stops it there by
 * PTRACE_INTERRUPT.  A signal that comes first is delivered, and the thread can stop in its
 * handler. */
static int enter_call(struct remote *r, enum entry entry)
{
	bool entered = false;
	int signal = 0;

	for (int i = 0; i < 100; i++) {
		int status;

		if ((entered && ptrace(PTRACE_INTERRUPT, r->carrier->tid, 0, 0)) ||
		    ptrace(entered ? PTRACE_CONT : PTRACE_SYSCALL, r->carrier->tid, 0, signal))
			return -errno;
		status = wait_stop(r);
		if (status < 0)
			return status;
		if (entered && status >> 16 == PTRACE_EVENT_STOP)
			return 0;
		if (!entered && WSTOPSIG(status) == (SIGTRAP | 0x80) &&
		    r->t->arch->restart.change_number && look_at_entry(r, entry))
			return -errno;
		signal =
		    status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		entered = true;
	}
	return -EBUSY;
}

/*
 * If the registers do not show how an interrupted call is going to be restarted, the call is
 * restarted: once for a thread that has not executed it yet, and once more so that the number shows
 * whether the kernel continues it by restart_syscall, with the time that is left.
 */
static int settle_restart(struct remote *r)
{
	const struct arch *arch = r->t->arch;
	long before;
	int ret = 0;

	/* Before the injected calls, which would overwrite its first argument. */
	thread_restart(r->t, r->carrier);
	before = thread_stands_before(r->t, r->carrier);
	r->before = before;
	for (int i = 0; i < 2 && !ret && before >= 0 && before != arch->nr.restart_syscall; i++) {
		ret = enter_call(r, ENTRY_LOOK);
		r->carrier->regs_valid = false;
		thread_restart(r->t, r->carrier);
		if (!ret)
			ret = thread_get_regs(r->t, r->carrier);
		before = ret ? -1 : thread_stands_before(r->t, r->carrier);
		if (before != arch->nr.restart_syscall)
			r->before = before;
	}
	return ret;
}

static int set_mask(struct remote *r, const uint64_t mask[2])
{
	size_t size = r->t->arch->syscall.sigset_size;

	return ptrace(PTRACE_SETSIGMASK, r->carrier->tid, size, mask) ? -errno : 0;
}

/* From the first register change on the thread restores itself if memprof is killed.  The signal
 * mask is therefore blocked after that change and unblocked before the registers are restored. */
static int borrow(struct remote *r)
{
	int err = settle_restart(r);

	if (err)
		return err;
	r->carrier->lent = true;
	if (ptrace(PTRACE_GETSIGMASK, r->carrier->tid, r->t->arch->syscall.sigset_size, r->sigmask))
		return -errno;
	r->saved = r->carrier->regs;
	abort_rseq(r);
	err = emergency_build(r);
	if (err)
		return err;
	fault_point("remote-frame");
	err = park(r);
	fault_point("remote-parked");
	if (!err)
		err = set_mask(r, (const uint64_t[2]){UINT64_MAX, UINT64_MAX});
	fault_point("remote-masked");
	if (err && !thread_put_regs(r->t, r->carrier, &r->saved))
		ignore_result(emergency_drop(r)); /* as in emergency_build() */
	if (err) {
		/* If the registers cannot be restored, the thread does it itself by the frame. */
		free(r->scratch);
		r->scratch = NULL;
	}
	return err;
}

static bool allows(const struct remote *r, long nr, const uint64_t args[6])
{
	return !r->filtered || !seccomp_forbids(r->t, r->carrier, nr, args);
}

/* A filter can be newer than the session.  If only one thread is stopped, another one can install a
 * filter for it at any time (SECCOMP_FILTER_FLAG_TSYNC). */
static bool is_filtered(const struct remote *r)
{
	struct proc_status st;

	return r->t->some_only || proc_status_read(r->t->pid, r->carrier->tid, &st) || st.seccomp;
}

/* The interrupt of a thread in vfork() is pending: it stops when it returns, before it executes any
 * instruction of the program. */
static void wait_for_vfork(struct target *t)
{
	struct deadline deadline = deadline_in_ms(WAIT_MS);

	while (target_in_vfork(t) && !deadline_passed(&deadline)) {
		usleep(LOOK_US);
		threads_catch_up(t);
		target_maps_changed(t);
	}
}

static int no_carrier(const struct target *t, struct mp_err *err)
{
	if (target_in_vfork(t))
		return mp_fail(err, MP_EXIT_TIMEOUT, -EAGAIN,
			       "all threads of process %d wait in vfork() for their children, so "
			       "none can make system calls for memprof; try again when a child "
			       "has executed a program or ended",
			       t->pid);
	return mp_fail(err, MP_EXIT_FAILURE, -EBUSY,
		       "no thread of process %d can make system calls for memprof", t->pid);
}

static int begin(struct remote *r, struct mp_err *err)
{
	struct target *t = r->t;
	int ret;

	if (emergency_find(t))
		return mp_fail(
		    err, MP_EXIT_FAILURE, -ENOENT,
		    "process %d has no system call instruction that memprof can use, or none with "
		    "which a thread could restore itself if memprof were killed",
		    t->pid);
	r->filtered = is_filtered(r);
	if (!allows(r, t->arch->nr.rt_sigreturn, NULL))
		return mp_fail(err, MP_EXIT_SECCOMP, -EACCES,
			       "the seccomp filter of process %d does not allow rt_sigreturn, "
			       "which its thread needs to restore itself if memprof is killed",
			       t->pid);
	/* Before injected calls replace the interrupted one. */
	thread_spare_wait(t, r->carrier);
	ret = thread_get_regs(t, r->carrier);
	if (!ret)
		ret = borrow(r);
	if (ret)
		return mp_fail(err, MP_EXIT_FAILURE, ret,
			       "cannot borrow thread %d for a system call: %s", r->carrier->tid,
			       strerror(-ret));
	r->active = true;
	steps_add(t->steps, "thread %d executes injected system calls%s", r->carrier->tid,
		  r->filtered ? "; its seccomp filters are evaluated for each" : "");
	return 0;
}

int remote_begin(struct remote *r, struct target *t, struct mp_err *err)
{
	*r = (struct remote){.t = t, .wait_ms = WAIT_MS};
	wait_for_vfork(t);
	choose_carrier(r);
	return r->carrier ? begin(r, err) : no_carrier(t, err);
}

int remote_begin_in(struct remote *r, struct target *t, struct thread *th, const struct maps *maps,
		    struct mp_err *err)
{
	*r = (struct remote){.t = t, .wait_ms = WAIT_MS, .carrier = th};
	return rank(t, th) < 0 || !on_own_stack(t, th, maps) || !emergency_room(t, maps, th)
		   ? -EBUSY
		   : begin(r, err);
}

/* Was the carrier killed?  waitpid() reports the end of a main thread only after all others have
 * been waited for. */
static bool is_dead(const struct remote *r)
{
	struct proc_status st;

	return proc_status_read(r->t->pid, r->carrier->tid, &st) || st.state == 'Z' ||
	       st.state == 'X';
}

/* Waits for a stop of the carrier.  Return: its wait status, or -errno. */
static int wait_stop(struct remote *r)
{
	struct deadline deadline = deadline_in_ms(r->wait_ms);
	int status;

	for (uint32_t i = 1;; i++) {
		pid_t got = waitpid(r->carrier->tid, &status, __WALL | WNOHANG);

		if (got < 0)
			return -ESRCH;
		if (got == 0) {
			if (i % LOOKS == 0 && is_dead(r)) {
				thread_late(r->t, r->carrier);
				return -ESRCH;
			}
			if (deadline_passed(&deadline))
				return -ETIMEDOUT;
			usleep(i < SHORT_WAITS ? WAIT_US : LONG_WAIT_US);
			continue;
		}
		if (!WIFSTOPPED(status) || status >> 16 == PTRACE_EVENT_EXIT) {
			thread_digest(r->t, r->carrier, status);
			return -ESRCH;
		}
		return status;
	}
}

/* All other signals are blocked.  SIGSTOP is delivered at once: the process stops when it is
 * released, and its parent is notified; only the carrier continues, for the injected calls. */
static int met_signal(int status)
{
	return !(status >> 16) && WSTOPSIG(status) == SIGSTOP ? SIGSTOP : 0;
}

/* Continues to the next system call stop. */
static int to_syscall_stop(struct remote *r)
{
	int signal = 0;

	for (int i = 0; i < 100; i++) {
		int status;

		if (ptrace(PTRACE_SYSCALL, r->carrier->tid, 0, signal))
			return -errno;
		fault_point("remote-runs");
		status = wait_stop(r);
		if (status < 0)
			return status;
		signal = met_signal(status);
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) || status >> 16 == PTRACE_EVENT_CLONE ||
		    status >> 16 == PTRACE_EVENT_FORK || status >> 16 == PTRACE_EVENT_VFORK) {
			r->last_event = status >> 16;
			if (r->last_event)
				ptrace(PTRACE_GETEVENTMSG, r->carrier->tid, 0, &r->event_message);
			if (!r->last_event)
				return 0;
		}
	}
	return -EBUSY;
}

static bool changes_maps(const struct arch *arch, long nr)
{
	return nr == arch->nr.mmap || nr == arch->nr.munmap || nr == arch->nr.mprotect ||
	       nr == arch->nr.munlock;
}

int remote_syscall_at_entry(struct remote *r, long nr, const uint64_t args[6], long *result,
			    void (*at_entry)(void *ctx), void *ctx)
{
	struct arch_regs regs = r->saved;
	int ret;

	if (r->failed)
		return r->failed;
	if (!allows(r, nr, args))
		return -EACCES;
	if (changes_maps(r->t->arch, nr))
		target_maps_changed(r->t);
	r->t->arch->emergency.set_return(&regs, r->t->code.syscall_return,
					 r->frame - r->t->code.return_pops, r->t->code.sigreturn);
	r->t->arch->syscall.set(&regs, r->t->code.syscall_return, nr, args);
	ret = thread_put_regs(r->t, r->carrier, &regs);
	fault_point("remote-set");
	if (!ret)
		ret = to_syscall_stop(r); /* entry */
	fault_point("remote-entry");
	if (!ret && at_entry)
		at_entry(ctx);
	if (!ret)
		ret = to_syscall_stop(r); /* exit */
	fault_point("remote-exit");
	/* The carrier's position is unknown now: another call could be mistaken for this one. */
	r->failed = ret;
	if (ret)
		return ret;
	r->carrier->regs_valid = false;
	ret = thread_get_regs(r->t, r->carrier);
	r->carrier->regs_valid = false;
	if (ret)
		return ret;
	*result = r->t->arch->syscall.result(&r->carrier->regs);
	return 0;
}

/* Whether a call did nothing because a signal was pending: ERESTARTSYS, ERESTARTNOINTR and the
 * others of linux/errno.h, which no program sees. */
static bool is_interrupted(long result)
{
	return result <= -512 && result >= -516;
}

int remote_syscall(struct remote *r, long nr, const uint64_t args[6], long *result)
{
	int ret = 0;

	*result = -EINTR;
	for (int i = 0; i < 8 && !ret; i++) {
		ret = remote_syscall_at_entry(r, nr, args, result, NULL, NULL);
		if (!is_interrupted(*result))
			break;
	}
	steps_add(r->t->steps, "injected system call %ld(%#llx, %#llx, %#llx, ...) = %#lx%s", nr,
		  (unsigned long long)args[0], (unsigned long long)args[1],
		  (unsigned long long)args[2], *result, ret ? " (failed)" : "");
	return ret;
}

uint64_t remote_string(struct remote *r, const char *text)
{
	size_t n = strlen(text) + 1;

	/* emergency.c reserves room for the string below the frame. */
	if (n > STRING_MAX)
		return 0;
	return mem_write(&r->t->mem, r->scratch_addr, text, n) ? 0 : r->scratch_addr;
}

/* Continues to a PTRACE_INTERRUPT stop.  The process can have entered or left a job control stop
 * since. */
static int to_interrupt_stop(struct remote *r)
{
	int signal = 0;

	for (int i = 0; i < 100; i++) {
		int status;

		if (ptrace(PTRACE_INTERRUPT, r->carrier->tid, 0, 0) ||
		    ptrace(PTRACE_CONT, r->carrier->tid, 0, signal))
			return -errno;
		status = wait_stop(r);
		if (status < 0)
			return status;
		if (status >> 16 == PTRACE_EVENT_STOP) {
			thread_digest(r->t, r->carrier, status);
			return 0;
		}
		signal = met_signal(status);
	}
	return -EBUSY;
}

/* Restores the registers, the signal mask and the bytes below the stack. */
static int put_back(struct remote *r)
{
	int ret = park(r); /* these registers show no call that could be restarted */

	fault_point("remote-done");
	if (!ret)
		ret = set_mask(r, r->sigmask);
	fault_point("remote-unmasked");
	if (!ret)
		ret = thread_put_regs(r->t, r->carrier, &r->saved);
	fault_point("remote-back");
	/* Last: the frame must exist as long as the registers are changed. */
	if (!ret) {
		ret = emergency_drop(r);
		fault_point("remote-end");
	}
	return ret;
}

int remote_end(struct remote *r)
{
	int ret, back;

	if (!r->active)
		return 0;
	r->active = false;
	ret = r->carrier->state == THREAD_GONE ? -ESRCH : to_interrupt_stop(r);
	/* Also from another kind of stop: a failed call is better than a thread that is not
	 * restored. */
	back = r->carrier->state == THREAD_GONE ? -ESRCH : put_back(r);
	ret = ret ? ret : back;
	if (!ret && r->goes_on)
		ret = enter_call(r, ENTRY_GO_ON);
	free(r->scratch);
	r->scratch = NULL;
	r->carrier->regs_valid = false;
	return ret;
}
