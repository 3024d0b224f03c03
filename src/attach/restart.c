/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/seccomp.h"

#define INSN 4 /* bytes of code that syscall.before() examines */

static bool code_is_call(struct target *t, const struct arch_regs *regs)
{
	uint8_t code[INSN];

	return t->arch->syscall.before &&
	       !mem_read(&t->mem, t->arch->regs.get_pc(regs), code, sizeof(code)) &&
	       t->arch->syscall.before(regs, code, sizeof(code));
}

long thread_stands_before(struct target *t, struct thread *th)
{
	return code_is_call(t, &th->regs) ? t->arch->syscall.number(&th->regs) : -1;
}

/* Is a signal pending whose handler will run, or that will end the process? */
static bool signal_waits(const struct target *t, const struct thread *th)
{
	struct proc_status st;

	return proc_status_read(t->pid, th->tid, &st) ||
	       ((st.sig_pending | st.shared_pending) & ~st.sig_blocked);
}

static int set_number(const struct target *t, const struct thread *th, int32_t number)
{
	struct iovec iov = {&number, sizeof(number)};

	if (t->arch->restart.call_regset)
		return ptrace(PTRACE_SETREGSET, th->tid, t->arch->restart.call_regset, &iov)
			   ? -errno
			   : 0;
	if (!t->arch->restart.change_number)
		return -ENOSYS;
	return ptrace((enum __ptrace_request)t->arch->restart.change_number, th->tid, NULL,
		      (void *)(intptr_t)number)
		   ? -errno
		   : 0;
}

/* Reads field 2 of /proc/PID/task/TID/syscall (proc(5)): the first argument that the call was made
 * with. */
static int read_argument(const struct target *t, const struct thread *th, long number,
			 uint64_t *value)
{
	char path[64], text[256];
	unsigned long long first;
	long shown;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", proc_of(t->pid), th->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = 0;
	if (sscanf(text, "%ld %llx", &shown, &first) != 2 || shown != number)
		return -EIO;
	*value = first;
	return 0;
}

/* The result has replaced the first argument in the registers.  The kernel keeps the argument, but
 * shows it only while it considers the thread to be in a call. */
static int first_argument(const struct target *t, const struct thread *th, uint64_t *value)
{
	long number = t->arch->syscall.number(&th->regs);
	int ret = set_number(t, th, (int32_t)number), back;

	if (!ret)
		ret = read_argument(t, th, number, value);
	back = set_number(t, th, -1);
	return ret ? ret : back;
}

/*
 * A recvmmsg() that is interrupted after its first message returns what it has received, and the
 * kernel stores the reason as the socket's error (do_recvmmsg()).  The next call on the socket
 * would fail with EINTR, or with the kernel's internal 512.  Reading the error (SO_ERROR) clears
 * it.
 */
static void forget_error(const struct target *t, const struct thread *th, int fd)
{
	socklen_t n = sizeof(int);
	struct pollfd p;
	int error;

	/* pidfd_getfd() uses the process's descriptor table, which can differ from the thread's. */
	if (th->tid != t->pid && syscall(SYS_kcmp, t->pid, th->tid, KCMP_FILES, 0, 0))
		return;
	p.fd = (int)syscall(SYS_pidfd_getfd, t->pidfd, fd, 0);
	p.events = 0;
	if (p.fd < 0)
		return;
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLERR))
		getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &n);
	close(p.fd);
}

/* If the registers of a stopped thread cannot be written, it is being killed. */
static void put_regs(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	ignore_result(thread_put_regs(t, th, regs));
}

void thread_restart(struct target *t, struct thread *th)
{
	const struct arch *arch = t->arch;
	struct arch_regs regs;
	uint64_t argument = 0;
	int fd;

	if (th->state != THREAD_STOPPED || thread_get_regs(t, th))
		return;
	regs = th->regs;
	fd = arch->restart.received_less ? arch->restart.received_less(&regs) : -1;
	if (fd >= 0)
		forget_error(t, th, fd);
	if (!arch->restart.interrupted(&regs) ||
	    (arch->syscall.before && (!code_is_call(t, &regs) || signal_waits(t, th))))
		return;
	if (arch->restart.call_regset) {
		if (th->lent || first_argument(t, th, &argument))
			return;
		memcpy(regs.raw, &argument, sizeof(argument));
	}
	put_regs(t, th, &regs);
}

/* Continues to the entry of the call that the thread is about to execute.  Return: whether it is
 * there. */
static bool to_entry(struct target *t, struct thread *th)
{
	int status;

	if (ptrace(PTRACE_SYSCALL, th->tid, 0, 0) || waitpid(th->tid, &status, __WALL) < 0)
		return false;
	th->regs_valid = false;
	if (!WIFSTOPPED(status)) {
		th->state = THREAD_GONE;
		return false;
	}
	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		return !thread_get_regs(t, th);
	/* A signal came first: the thread continues in its handler. */
	th->state = THREAD_RUNNING;
	ptrace(PTRACE_CONT, th->tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	return false;
}

static void restart_whole(struct target *t, struct thread *th)
{
	const struct arch *arch = t->arch;
	struct arch_regs regs;
	uint64_t pc;
	long number;

	if (th->state != THREAD_STOPPED || thread_get_regs(t, th))
		return;
	if (!arch->syscall.before) {
		if (arch->restart.whole(&th->regs))
			put_regs(t, th, &th->regs);
		return;
	}
	number = thread_stands_before(t, th);
	pc = arch->regs.get_pc(&th->regs);
	/* The kernel reports the call to the tracer before it runs the filter. */
	if (number < 0 || number == arch->nr.restart_syscall || !to_entry(t, th))
		return;
	/* Whichever call the kernel is about to make, this one is executed from its instruction
	 * again.  Not from here: a thread that is released at the entry of a call has that call
	 * interrupted once more. */
	regs = th->regs;
	arch->restart.set_number(&regs, number);
	arch->regs.set_pc(&regs, pc);
	if (!set_number(t, th, -1))
		put_regs(t, th, &regs);
	th->regs_valid = false;
}

void thread_spare_wait(struct target *t, struct thread *th)
{
	if (t->status.seccomp && th->state == THREAD_STOPPED &&
	    seccomp_forbids(t, th, t->arch->nr.restart_syscall, NULL))
		restart_whole(t, th);
}
