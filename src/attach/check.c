/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/namespace.h"
#include "attach/refusal.h"
#include "lib/deadline.h"

#define CAP_SYS_PTRACE 19   /* linux/capability.h */
#define END_MS	       20   /* until the end of a killed process becomes visible */
#define DYING_MS       2000 /* until all of its threads got a processor to end */

int check_ptrace_scope(void)
{
	char c = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &c, 1) != 1)
			c = '0';
		close(fd);
	}
	return c - '0';
}

/* The kernel does not show the namespaces of a process that memprof may not trace.  If memprof is
 * in a user namespace other than the first, such a process is most likely outside of that. */
static bool in_other_userns(pid_t pid)
{
	char path[64], theirs[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", proc_of(pid));
	return readlink(path, theirs, sizeof(theirs)) < 0 ? namespace_is_inner("user")
							  : namespace_is_other(pid, "user");
}

int check_traced(const struct target *t, pid_t tracer, struct mp_err *err)
{
	struct proc_status by;

	if (proc_status_read(tracer, 0, &by))
		snprintf(by.name, sizeof(by.name), "?");
	return mp_fail(err, MP_EXIT_TRACED, -EBUSY,
		       "process %d (%s) is already traced by %s (pid %d); end that first", t->pid,
		       t->status.name, by.name, tracer);
}

bool check_ended(const struct proc_status *st)
{
	return (st->state == 'Z' && st->threads < 2) || st->state == 'X';
}

/* In the middle of execve() a process looks as if it had ended or had no memory. */
int check_status(pid_t pid, struct proc_status *st)
{
	int ret = proc_status_read(pid, 0, st);

	for (int ms = 0; !ret && (check_ended(st) || st->no_memory) && ms < EXEC_MS; ms++) {
		usleep(1000);
		ret = proc_status_read(pid, 0, st);
	}
	return ret;
}

static bool is_over(const struct target *t)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};
	struct proc_status st;
	int ret;

	if (poll(&p, 1, 0) == 1)
		return true;
	ret = check_status(t->pid, &st);
	return ret ? ret == -ESRCH : check_ended(&st) || st.no_memory;
}

int check_over(const struct target *t, struct mp_err *err)
{
	return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "process %d has ended", t->pid);
}

int target_check_program(const struct target *t, struct mp_err *err)
{
	uint8_t byte;

	/* After an execve() the old memory descriptor reads 0 bytes; otherwise address 0 is an
	 * error. */
	if (!t->execed && (t->mem.fd < 0 || mem_read_some(&t->mem, 0, &byte, 1)))
		return 0;
	if (is_over(t))
		return check_over(t, err);
	return mp_fail(
	    err, MP_EXIT_NO_PROCESS, -ESRCH,
	    "process %d executed another program meanwhile; the new program was not touched",
	    t->pid);
}

int target_ask_again(const struct target *t, int error, struct mp_err *err)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};
	struct deadline deadline = deadline_in_ms(error == -ESRCH ? DYING_MS : END_MS);

	do {
		if (poll(&p, 1, END_MS) == 1)
			return check_over(t, err);
		if (target_check_program(t, err))
			return -ESRCH;
	} while (!deadline_passed(&deadline));
	return error;
}

int target_refused(const struct target *t, int error, struct mp_err *err)
{
	const struct proc_status *st = &t->status;
	struct proc_status tracer, self;
	struct refusal r = {.pid = t->pid,
			    .target = st,
			    .error = error,
			    .scope = check_ptrace_scope(),
			    .uid = (uint32_t)geteuid(),
			    .other_userns = in_other_userns(t->pid)};

	if (is_over(t))
		return check_over(t, err);
	if (target_check_program(t, err))
		return -ESRCH;
	if (!proc_status_read(t->pid, 0, &tracer) && tracer.tracer)
		return check_traced(t, tracer.tracer, err);
	r.may_ptrace =
	    !proc_status_read(getpid(), 0, &self) && self.cap_effective >> CAP_SYS_PTRACE & 1;
	return refusal_explain(&r, err);
}

bool check_alive(const struct target *t)
{
	struct proc_status st;

	return !proc_status_read(t->pid, 0, &st) &&
	       ((st.state != 'Z' && st.state != 'X') || st.threads > 1);
}
