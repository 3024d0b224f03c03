/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Seizes, stops and resumes all threads of a process.  A thread that is only stopped has its
 * registers left alone, unless its system call must be restarted (attach/restart.h).
 */
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/emergency.h"
#include "attach/restart.h"
#include "attach/seize.h"
#include "attach/threads.h"
#include "attach/target.h"
#include "lib/fault.h"

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |     \
	 PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD)

#define REFUSALS     20	 /* for one thread, 1 ms apart */
#define LOOK_US	     100 /* the longest time that a thread stays stopped for a signal */
#define SEIZE_ONE_MS 1000
#define CHILD_LOOKS  20 /* 100 us apart */

static struct thread *find(struct target *t, pid_t tid)
{
	vec_for_each (&t->threads, it) {
		if ((*it)->tid == tid && (*it)->state != THREAD_GONE)
			return *it;
	}
	return NULL;
}

/* Both lists are in order of creation, with few exceptions: the search starts at *@next. */
static bool is_known(struct target *t, pid_t tid, size_t *next)
{
	for (size_t n = 0; n < t->threads.n; n++) {
		size_t i = (*next + n) % t->threads.n;

		if (t->threads.at[i]->tid == tid) {
			*next = i + 1;
			return true;
		}
		if (n == 8)
			return find(t, tid) != NULL;
	}
	return false;
}

static struct thread *add(struct target *t, pid_t tid)
{
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->tid = tid;
	if (vec_push(&t->threads, th)) {
		free(th);
		return NULL;
	}
	return th;
}

static void drop_gone(struct target *t)
{
	size_t keep = 0;

	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state == THREAD_GONE)
			free(t->threads.at[i]);
		else
			t->threads.at[keep++] = t->threads.at[i];
	}
	t->threads.n = keep;
}

/* Return: 0 when memprof traces the thread, -ESRCH if it has ended, -EAGAIN if it could not be
 * seized by the deadline, or another negative errno.  @waited: set to true if other threads
 * continued in the meantime. */
static int seize_one(struct target *t, pid_t tid, const struct deadline *deadline, bool *waited)
{
	struct proc_status st;

	for (int refused = 0;;) {
		int ret = seize_thread(t->pid, tid, OPTIONS);

		if (ret == -EINTR) {
			*waited = true;
			threads_catch_up(t);
			if (deadline_passed(deadline))
				return -EAGAIN;
			continue;
		}
		if (ret != -EPERM)
			return ret;
		/* The thread has ended, or is a new one that the kernel has seized already. */
		if (proc_status_read(t->pid, tid, &st) || st.state == 'Z' || st.state == 'X')
			return -ESRCH;
		if (st.tracer == getpid())
			return 0;
		/* Or it had ended, and the thread that called execve() has its number now; or a
		 * tracer has released it since.  target_look() found that memprof is permitted to
		 * trace the process. */
		if (st.tracer || refused++ == REFUSALS)
			return -EPERM;
		usleep(1000);
	}
}

static void note_filter(struct target *t, pid_t tid)
{
	struct proc_status st;

	if (!t->status.seccomp && !proc_status_read(t->pid, tid, &st))
		t->status.seccomp = st.seccomp;
}

static int seize_refused(struct target *t, int error, struct mp_err *err)
{
	if (error != -EAGAIN)
		return target_refused(t, error, err);
	return mp_fail(err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
		       "process %d is starting another program (execve), which did not end in "
		       "time; it was left alone",
		       t->pid);
}

/* Seizes the threads in /proc/PID/task that are not seized yet.  Return: 0 if there was nothing
 * new, 1 if there was, or -errno with @err. */
static int seize_pass(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	struct tids tids;
	size_t next = 0;
	bool fresh = false;
	int ret = proc_tasks(t->pid, &tids);

	if (ret)
		return target_refused(t, ret, err);
	for (size_t i = 0; i < tids.list.n && !ret; i++) {
		pid_t tid = tids.list.at[i];

		if (is_known(t, tid, &next))
			continue;
		ret = seize_one(t, tid, deadline, &fresh);
		if (ret == -ESRCH) {
			ret = 0;
			continue;
		}
		if (ret)
			seize_refused(t, ret, err);
		/* threads_catch_up() can have added it. */
		else if (!find(t, tid) && !add(t, tid))
			ret = mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
		note_filter(t, tid);
		fresh = true;
		fault_point("seized");
	}
	vec_free(&tids.list);
	return ret ? ret : fresh;
}

/* All its threads can have been replaced by one that called execve(). */
static bool lives(const struct target *t)
{
	struct proc_status st;

	return !proc_status_read(t->pid, 0, &st) &&
	       ((st.state != 'Z' && st.state != 'X') || st.threads > 1);
}

/* @fresh: result of seize_pass().  Return: whether there can be more to seize. */
static bool seize_more(const struct target *t, int fresh, const struct deadline *deadline)
{
	return fresh > 0 || (!fresh && !t->threads.n && lives(t) && !deadline_passed(deadline));
}

int target_seize(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	bool again = false;
	int fresh;

	/* Searching large files takes a while, so it is done before the threads are stopped.
	 * Missing code is detected and reported when it is needed. */
	ignore_result(emergency_find(t));
	t->exited = t->execed = false;
	do {
		drop_gone(t);
		fresh = seize_pass(t, deadline, err);
		/* A slow first pass is not a fault of the process, so the deadline does not apply
		 * to it. */
		if (fresh > 0 && again && deadline_passed(deadline))
			fresh = mp_fail(err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
					"the threads of process %d could not be seized in time "
					"(does it create threads very fast?); it was left alone",
					t->pid);
		again = true;
	} while (seize_more(t, fresh, deadline));
	if (fresh < 0) {
		target_release(t);
		return fresh;
	}
	if (!t->threads.n)
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "process %d is gone", t->pid);
	fault_point("all-seized");
	return 0;
}

/* Return: 0, -ESRCH if the thread cannot be seized now, or another negative errno. */
static int seize(struct target *t, pid_t tid)
{
	struct deadline deadline = deadline_in_ms(SEIZE_ONE_MS);
	struct proc_status st;
	bool waited = false;
	int ret;

	if (proc_status_read(t->pid, tid, &st) || (st.state != 'R' && st.state != 'S'))
		return -ESRCH;
	t->exited = t->execed = false;
	ret = seize_one(t, tid, &deadline, &waited);
	if (ret)
		return ret;
	note_filter(t, tid);
	return add(t, tid) ? 0 : -ENOMEM;
}

static int seized_one(struct target *t, int seized, struct mp_err *err)
{
	t->some_only = !seized;
	if (seized == -ESRCH)
		return mp_fail(err, MP_EXIT_TIMEOUT, -EAGAIN,
			       "no thread of process %d can be stopped now; it was left alone",
			       t->pid);
	return seized ? seize_refused(t, seized, err) : 0;
}

int target_seize_thread(struct target *t, pid_t tid, struct mp_err *err)
{
	/* As in target_seize(). */
	ignore_result(emergency_find(t));
	return seized_one(t, seize(t, tid), err);
}

/* Seizes the main thread, unless it has ended or cannot be seized now; else the first thread that
 * can be. */
int target_seize_one(struct target *t, struct mp_err *err)
{
	struct tids tids;
	int ret = proc_tasks(t->pid, &tids), seized = -ESRCH;

	if (ret)
		return target_refused(t, ret, err);
	ignore_result(emergency_find(t));
	for (size_t i = 0; i < tids.list.n && seized == -ESRCH; i++)
		seized = seize(t, tids.list.at[i]);
	vec_free(&tids.list);
	return seized_one(t, seized, err);
}

/*
 * Releases a child process that the kernel seized because it was forked while its parent is traced.
 * It was born either before any byte was patched or with the complete patch.  It can be released
 * after its first stop, which takes a while on a busy machine.
 */
static void let_child_go(struct target *t, pid_t child)
{
	int status;

	for (int i = 0; i < CHILD_LOOKS && !fault_fail("child-born"); i++) {
		pid_t got = waitpid(child, &status, __WALL | WNOHANG);

		if (got == child && WIFSTOPPED(status))
			ptrace(PTRACE_DETACH, child, 0, 0);
		if (got)
			return;
		usleep(100);
	}
	(void)vec_push(&t->late, child);
}

void thread_late(struct target *t, struct thread *th)
{
	th->state = THREAD_GONE;
	(void)vec_push(&t->late, th->tid);
}

/*
 * Continues the thread, to a PTRACE_INTERRUPT stop if one was requested.  Any trap clears a pending
 * interrupt in the kernel (ptrace_stop()), so it is requested again; the kernel handles it before
 * the next signal.
 */
static void go_on(struct target *t, struct thread *th, int signal)
{
	if ((th->interrupt_sent && ptrace(PTRACE_INTERRUPT, th->tid, 0, 0)) ||
	    ptrace(PTRACE_CONT, th->tid, 0, signal)) {
		if (errno == ESRCH)
			thread_late(t, th);
	}
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* A clone, fork or vfork happened: keeps a new thread, releases a new process. */
static void take_child(struct target *t, struct thread *parent)
{
	unsigned long message = 0;
	struct proc_status st;
	pid_t child;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, 0, &message) || !message)
		return;
	child = (pid_t)message;
	if (proc_status_read(child, 0, &st) || st.tgid != t->pid)
		let_child_go(t, child);
	else if (!find(t, child))
		add(t, child);
}

void thread_digest(struct target *t, struct thread *th, int status)
{
	int sig = WSTOPSIG(status);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		th->state = THREAD_GONE;
		if (th->tid == t->pid)
			t->exited = true;
		return;
	}
	if (!WIFSTOPPED(status))
		return;
	switch (status >> 16) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		take_child(t, th);
		go_on(t, th, 0);
		return;
	case PTRACE_EVENT_EXEC:
		t->execed = true;
		go_on(t, th, 0);
		return;
	case PTRACE_EVENT_EXIT:
		/* It runs no more user code; it is waited for until it is reaped. */
		ptrace(PTRACE_CONT, th->tid, 0, 0);
		thread_late(t, th);
		return;
	case PTRACE_EVENT_STOP:
		th->state = is_stop_signal(sig) ? THREAD_GROUP_STOPPED : THREAD_STOPPED;
		/* At once, so that the thread is in a correct state if memprof is killed now.
		 * Where an early restart could deprive a signal of its EINTR, it is done later. */
		if (!t->arch->before_syscall && !th->lent)
			thread_restart(t, th);
		return;
	}
	go_on(t, th, sig == (SIGTRAP | 0x80) ? 0 : sig);
}

static uint32_t running(const struct target *t)
{
	uint32_t n = 0;

	vec_for_each (&t->threads, it)
		n += (*it)->state == THREAD_RUNNING;
	return n;
}

static int too_slow(struct target *t, struct mp_err *err)
{
	char path[64], wchan[64] = "?";
	pid_t slow = 0;
	FILE *f;

	vec_for_each (&t->threads, it) {
		if ((*it)->state == THREAD_RUNNING)
			slow = (*it)->tid;
	}
	if (slow) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", t->pid, slow);
		f = fopen(path, "re");
		if (f) {
			if (!fgets(wchan, sizeof(wchan), f))
				strcpy(wchan, "?");
			fclose(f);
		}
	}
	target_release(t);
	return mp_fail(err, MP_EXIT_TIMEOUT, -ETIMEDOUT,
		       "thread %d of process %d did not stop in time (it waits in the kernel at "
		       "%s); the process was left alone",
		       slow, t->pid, wchan);
}

bool thread_waits_in_vfork(const struct target *t, const struct thread *th)
{
	char path[64], wchan[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", t->pid, th->tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(wchan, sizeof(wchan), f))
		wchan[0] = 0;
	fclose(f);
	/* The kernel function is wait_for_vfork_done() or, if that was inlined, its caller.  Any
	 * other wait in that caller has its own function name. */
	return strstr(wchan, "vfork") || !strcmp(wchan, "kernel_clone") ||
	       !strcmp(wchan, "_do_fork");
}

static void interrupt(struct target *t, struct thread *th)
{
	th->interrupt_sent = true;
	if (ptrace(PTRACE_INTERRUPT, th->tid, 0, 0) && errno == ESRCH)
		thread_late(t, th);
}

static void interrupt_new(struct target *t)
{
	vec_for_each (&t->threads, it) {
		if ((*it)->state == THREAD_RUNNING && !(*it)->interrupt_sent)
			interrupt(t, *it);
	}
}

/* waitpid() does not know the thread any more.  A thread that calls execve() takes over the number
 * of the process and stays seized. */
static void lose(struct target *t, struct thread *th)
{
	struct proc_status st;

	if (th->tid == t->pid || find(t, t->pid) || proc_status_read(t->pid, 0, &st) ||
	    st.state == 'Z' || st.tracer != getpid())
		th->state = THREAD_GONE;
	else
		th->tid = t->pid;
}

bool thread_collect(struct target *t, struct thread *th)
{
	int status;
	pid_t got = waitpid(th->tid, &status, __WALL | WNOHANG);

	if (got == th->tid)
		thread_digest(t, th, status);
	else if (got < 0)
		lose(t, th);
	return got != 0;
}

/* Handles the wait statuses of running threads.  Return: whether there were any. */
static bool collect(struct target *t)
{
	bool any = false;

	/* By index: thread_digest() can add threads. */
	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state == THREAD_RUNNING)
			any |= thread_collect(t, t->threads.at[i]);
	}
	return any;
}

static bool is_other_process(const struct target *t, pid_t tid)
{
	struct proc_status st;

	return !proc_status_read(tid, 0, &st) && st.tgid != t->pid;
}

/* Moves a late thread back to @t->threads when it has a wait status to handle. */
static bool collect_late(struct target *t)
{
	bool any = false;

	for (size_t i = 0; i < t->late.n;) {
		pid_t tid = t->late.at[i];
		struct thread *th;
		int status;
		pid_t got = find(t, tid) || is_other_process(t, tid)
				? 0
				: waitpid(tid, &status, __WALL | WNOHANG);

		if (!got) {
			i++;
			continue;
		}
		t->late.at[i] = t->late.at[--t->late.n];
		th = got == tid ? add(t, tid) : NULL;
		if (th)
			thread_digest(t, th, status);
		any = true;
	}
	return any;
}

bool threads_catch_up(struct target *t)
{
	bool any = collect_late(t);

	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state != THREAD_GONE)
			any |= thread_collect(t, t->threads.at[i]);
	}
	return any;
}

/* waitpid() reports the end of a main thread only after all others have ended. */
static bool is_dead_main(const struct target *t, const struct thread *th)
{
	struct proc_status st;

	return th->tid == t->pid && !proc_status_read(t->pid, 0, &st) && st.state == 'Z' &&
	       st.threads > 1;
}

/* Stops all threads that are known.  Return: 0, or -ETIMEDOUT with @err and everything released. */
static int stop_known(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	uint32_t idle = 0;

	interrupt_new(t);
	while (running(t)) {
		if (collect(t)) {
			idle = 0;
			interrupt_new(t);
			continue;
		}
		if (++idle < 200) {
			sched_yield();
			continue;
		}
		threads_catch_up(t);
		vec_for_each (&t->threads, it) {
			if ((*it)->state != THREAD_RUNNING)
				continue;
			if (thread_waits_in_vfork(t, *it))
				(*it)->state = THREAD_IN_VFORK;
			else if (is_dead_main(t, *it))
				thread_late(t, *it);
		}
		if (deadline_passed(deadline))
			return too_slow(t, err);
		usleep(50);
	}
	drop_gone(t);
	return 0;
}

/* Checks that a thread is stopped and that the process runs the program that target_look() found.
 * Return: 0, or -ESRCH with @err. */
static int still_itself(const struct target *t, struct mp_err *err)
{
	if (t->exited || (!t->threads.n && !lives(t)))
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "process %d has ended", t->pid);
	if (target_check_program(t, err))
		return -ESRCH;
	if (!t->threads.n)
		return mp_fail(
		    err, MP_EXIT_NO_PROCESS, -ESRCH,
		    "the thread of process %d that memprof had chosen has ended; try again",
		    t->pid);
	return 0;
}

/* Interrupts all threads, including new ones, and waits for their stops.  Return: as target_stop().
 */
static int bring_to_stop(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	int fresh;

	do {
		fresh = stop_known(t, deadline, err);
		if (fresh)
			return fresh;
		/* New threads of seized threads are seized by the kernel; a thread that was missed
		 * between two passes of target_seize() is found here. */
		if (!t->exited && !t->some_only)
			fresh = seize_pass(t, deadline, err);
		if (fresh > 0 && deadline_passed(deadline))
			return too_slow(t, err);
	} while (!t->exited && !t->some_only && seize_more(t, fresh, deadline));
	if (fresh >= 0)
		fresh = still_itself(t, err);
	if (fresh < 0 || !t->threads.n) {
		target_release(t);
		return fresh;
	}
	t->mem.tid = t->threads.at[0]->tid;
	return 0;
}

int target_stop(struct target *t, const struct deadline *deadline, struct mp_err *err)
{
	int ret;

	target_maps_changed(t);
	vec_for_each (&t->threads, it)
		(*it)->interrupt_sent = false;
	t->stopped_at_ns = mono_ns();
	ret = bring_to_stop(t, deadline, err);
	if (!ret)
		fault_point("stopped");
	return ret;
}

static int get_hidden(const struct arch *a, struct thread *th)
{
	for (uint8_t i = 0; i < a->nhidden; i++) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKUSER, th->tid, a->hidden[i].user, 0);
		if (errno)
			return -errno;
		memcpy(th->regs.raw + a->hidden[i].at, &word, sizeof(word));
	}
	return 0;
}

/* Writes the hidden registers that are zero (@zero), or those that are not. */
static int put_hidden(const struct arch *a, const struct thread *th, const struct arch_regs *regs,
		      bool zero)
{
	for (uint8_t i = 0; i < a->nhidden; i++) {
		long word;

		memcpy(&word, regs->raw + a->hidden[i].at, sizeof(word));
		if (!word == zero && ptrace(PTRACE_POKEUSER, th->tid, a->hidden[i].user, word))
			return -errno;
	}
	return 0;
}

int thread_get_regs(struct target *t, struct thread *th)
{
	struct iovec iov = {th->regs.raw, sizeof(th->regs.raw)};

	if (th->regs_valid)
		return 0;
	if (th->state != THREAD_STOPPED && th->state != THREAD_GROUP_STOPPED)
		return -EBUSY;
	if (ptrace(PTRACE_GETREGSET, th->tid, NT_PRSTATUS, &iov))
		return -errno;
	if (iov.iov_len != t->arch->regset_size)
		return -ENOEXEC;
	th->regs.size = iov.iov_len;
	if (get_hidden(t->arch, th))
		return -errno;
	th->regs_valid = true;
	return 0;
}

uint64_t thread_get_tp(const struct target *t, const struct thread *th)
{
	const struct arch *a = t->arch;
	uint8_t word[sizeof(uint64_t)] = {0};
	struct iovec iov = {word, sizeof(word)};

	if (a->get_tp)
		return a->get_tp(&th->regs);
	if (a->tls.regset &&
	    !ptrace(PTRACE_GETREGSET, th->tid, (void *)(uintptr_t)a->tls.regset, &iov))
		return arch_word(a, word);
	if (a->tls.request && !ptrace((enum __ptrace_request)a->tls.request, th->tid, NULL, word))
		return arch_word(a, word);
	return 0;
}

int thread_put_regs(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct iovec iov = {(void *)regs->raw, regs->size};

	/* The mark of a call to restart is set before the registers of that call are written, and
	 * cleared after them, so that the kernel restarts nothing in between. */
	if (put_hidden(t->arch, th, regs, false) ||
	    ptrace(PTRACE_SETREGSET, th->tid, NT_PRSTATUS, &iov) ||
	    put_hidden(t->arch, th, regs, true))
		return -errno;
	th->regs = *regs;
	return 0;
}

static void resume(struct target *t, struct thread *th)
{
	bool listens = th->state == THREAD_GROUP_STOPPED;

	if (th->state == THREAD_IN_VFORK) {
		th->state = THREAD_RUNNING; /* its interrupt is still pending */
		return;
	}
	if (th->state == THREAD_RUNNING || th->state == THREAD_GONE)
		return;
	if (!listens) {
		thread_restart(t, th);
		thread_spare_wait(t, th);
	}
	th->state = THREAD_RUNNING;
	th->regs_valid = th->lent = th->interrupt_sent = false;
	fault_point("resume");
	/* A thread in a job control stop stays stopped, but listens (ptrace(2), PTRACE_LISTEN). */
	if (ptrace(listens ? PTRACE_LISTEN : PTRACE_CONT, th->tid, 0, 0) && errno == ESRCH)
		thread_late(t, th);
}

void target_run(struct target *t, uint32_t us)
{
	uint64_t end;
	bool any;

	vec_for_each (&t->threads, it)
		resume(t, *it);
	t->mem.tid = 0;
	t->last_stop_ns = mono_ns() - t->stopped_at_ns;
	end = mono_ns() + us * 1000ull;
	do {
		usleep(LOOK_US);
		any = collect(t);
		any |= collect_late(t);
		if (!any)
			continue;
		vec_for_each (&t->threads, it) {
			/* A thread that returned from vfork() stays stopped until target_stop(): if
			 * resumed, it could be in the next vfork() by then. */
			if (!(*it)->interrupt_sent)
				resume(t, *it);
		}
	} while (mono_ns() < end);
}

/* Stops marked threads that are not @busy any more.  Return: whether a marked thread is left. */
static bool stop_done(struct target *t, bool (*busy)(const void *ctx, const struct thread *th),
		      const void *ctx)
{
	bool left = false;

	vec_for_each (&t->threads, it) {
		struct thread *th = *it;

		if (!th->keep || th->state == THREAD_GONE)
			continue;
		if (th->state == THREAD_RUNNING && !busy(ctx, th)) {
			th->keep = false;
			interrupt(t, th);
			continue;
		}
		resume(t, th);
		left = true;
	}
	return left;
}

int target_run_kept(struct target *t, uint32_t us,
		    bool (*busy)(const void *ctx, const struct thread *th), const void *ctx,
		    const struct deadline *deadline, struct mp_err *err)
{
	uint64_t end = mono_ns() + us * 1000ull;

	target_maps_changed(t);
	vec_for_each (&t->threads, it) {
		if ((*it)->keep)
			resume(t, *it);
	}
	t->mem.tid = 0;
	do {
		usleep(LOOK_US);
		collect(t);
		collect_late(t);
	} while (stop_done(t, busy, ctx) && mono_ns() < end);
	return bring_to_stop(t, deadline, err);
}
