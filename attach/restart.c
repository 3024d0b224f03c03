/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#define INSN 4 /* bytes of code that before_syscall() looks at */

static bool code_is_call(struct target *t, const struct arch_regs *regs)
{
	uint8_t code[INSN];

	return t->arch->before_syscall &&
	       !mem_read(&t->mem, t->arch->get_pc(regs), code, sizeof(code)) &&
	       t->arch->before_syscall(regs, code, sizeof(code));
}

long thread_stands_before(struct target *t, struct thread *th)
{
	return code_is_call(t, &th->regs) ? t->arch->syscall_number(&th->regs) : -1;
}

/* Its handler is to run, or the signal is going to end the process. */
static bool signal_waits(const struct target *t, const struct thread *th)
{
	struct proc_status st;

	return proc_status_read(t->pid, th->tid, &st) ||
	       ((st.sig_pending | st.shared_pending) & ~st.sig_blocked);
}

static int set_number(const struct target *t, const struct thread *th, int32_t number)
{
	struct iovec iov = {&number, sizeof(number)};

	return ptrace(PTRACE_SETREGSET, th->tid, t->arch->call_regset, &iov) ? -errno : 0;
}

/* Field 2 of /proc/PID/task/TID/syscall (proc(5)): the first argument as the call was made. */
static int read_argument(const struct target *t, const struct thread *th, uint64_t *value)
{
	char path[64], text[256];
	unsigned long long first;
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
	if (sscanf(text, "%*d %llx", &first) != 1)
		return -EIO;
	*value = first;
	return 0;
}

/* The result took the place of the first argument, and the kernel shows the one it keeps only as
 * long as it takes the thread to be in a call. */
static int first_argument(const struct target *t, const struct thread *th, uint64_t *value)
{
	int ret = set_number(t, th, (int32_t)t->arch->syscall_number(&th->regs)), back;

	if (!ret)
		ret = read_argument(t, th, value);
	back = set_number(t, th, -1);
	return ret ? ret : back;
}

void thread_restart(struct target *t, struct thread *th)
{
	const struct arch *arch = t->arch;
	struct arch_regs regs;
	uint64_t argument = 0;

	if (th->state != THREAD_STOPPED || thread_get_regs(t, th))
		return;
	regs = th->regs;
	if (!arch->restart_interrupted(&regs) ||
	    (arch->before_syscall && (!code_is_call(t, &regs) || signal_waits(t, th))))
		return;
	if (arch->call_regset) {
		if (first_argument(t, th, &argument))
			return;
		memcpy(regs.raw, &argument, sizeof(argument));
	}
	thread_put_regs(t, th, &regs);
}
