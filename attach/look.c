/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks before anything is changed: can memprof attach to this process, and if not, why? */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach/refusal.h"
#include "attach/stat.h"
#include "attach/target.h"
#include "attach/threads.h"

#define CAP_SYS_PTRACE 19 /* linux/capability.h */
#define PAGE	       4096
#define PF_KTHREAD     0x00200000 /* include/linux/sched.h */
#define EXEC_MS	       10
#define END_MS	       20  /* until the end of a killed process becomes visible */
#define SHARED_MS      100 /* until the parent in vfork() is seen to wait */

static int ptrace_scope(void)
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

static bool other_user_namespace(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", proc_of(pid));
	a = readlink("/proc/self/ns/user", ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && b > 0 && (a != b || memcmp(ours, theirs, (size_t)a));
}

static int refuse_traced(const struct target *t, pid_t tracer, struct mp_err *err)
{
	struct proc_status by;

	if (proc_status_read(tracer, 0, &by))
		snprintf(by.name, sizeof(by.name), "?");
	return mp_fail(err, MP_EXIT_TRACED, -EBUSY,
		       "process %d (%s) is already traced by %s (pid %d); end that first", t->pid,
		       t->status.name, by.name, tracer);
}

static bool ended(const struct proc_status *st)
{
	return (st->state == 'Z' && st->threads < 2) || st->state == 'X';
}

/* In the middle of execve() a process looks as if it had ended or had no memory. */
static int read_status(pid_t pid, struct proc_status *st)
{
	int ret = proc_status_read(pid, 0, st);

	for (int ms = 0; !ret && (ended(st) || st->no_memory) && ms < EXEC_MS; ms++) {
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
	ret = read_status(t->pid, &st);
	return ret ? ret == -ESRCH : ended(&st) || st.no_memory;
}

static int refuse_ended(const struct target *t, struct mp_err *err)
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
		return refuse_ended(t, err);
	return mp_fail(
	    err, MP_EXIT_NO_PROCESS, -ESRCH,
	    "process %d executed another program meanwhile; the new program was not touched",
	    t->pid);
}

int target_ask_again(const struct target *t, int error, struct mp_err *err)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

	if (poll(&p, 1, END_MS) == 1)
		return refuse_ended(t, err);
	return target_check_program(t, err) ? -ESRCH : error;
}

int target_refused(const struct target *t, int error, struct mp_err *err)
{
	const struct proc_status *st = &t->status;
	struct proc_status tracer, self;
	struct refusal r = {.pid = t->pid,
			    .target = st,
			    .error = error,
			    .scope = ptrace_scope(),
			    .uid = (uint32_t)geteuid(),
			    .other_userns = other_user_namespace(t->pid)};

	if (is_over(t))
		return refuse_ended(t, err);
	if (target_check_program(t, err))
		return -ESRCH;
	if (!proc_status_read(t->pid, 0, &tracer) && tracer.tracer)
		return refuse_traced(t, tracer.tracer, err);
	r.may_ptrace =
	    !proc_status_read(getpid(), 0, &self) && self.cap_effective >> CAP_SYS_PTRACE & 1;
	return refusal_explain(&r, err);
}

/* Mappings and patches are computed in pages of 4 KiB. */
static int check_pages(struct mp_err *err)
{
	long page = sysconf(_SC_PAGESIZE);

	if (page == PAGE)
		return 0;
	return mp_fail(err, MP_EXIT_ARCH, -ENOTSUP,
		       "this kernel has pages of %ld KiB; memprof supports those of 4 KiB",
		       page / 1024);
}

static int check_machine(struct target *t, struct mp_err *err)
{
	unsigned char e[20];
	char path[64];
	uint16_t machine;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_of(t->pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return target_refused(t, -errno, err);
	n = read(fd, e, sizeof(e));
	close(fd);
	if (n != (ssize_t)sizeof(e) || memcmp(e, ELFMAG, SELFMAG))
		return mp_fail(err, MP_EXIT_ARCH, -ENOEXEC,
			       "process %d (%s) does not run an ELF file", t->pid, t->status.name);
	machine = e[EI_DATA] == ELFDATA2MSB ? (uint16_t)(e[18] << 8 | e[19])
					    : (uint16_t)(e[19] << 8 | e[18]);
	t->arch = arch_for_elf(e[EI_CLASS], e[EI_DATA], machine);
	if (t->arch == arch_native())
		return 0;
	if (t->arch)
		return mp_fail(err, MP_EXIT_ARCH, -ENOEXEC,
			       "process %d (%s) is a program for %s; this memprof attaches to "
			       "programs for %s",
			       t->pid, t->status.name, t->arch->name, arch_native()->name);
	return mp_fail(err, MP_EXIT_ARCH, -ENOEXEC,
		       "process %d (%s) is a %s-bit program of ELF machine %u; this memprof "
		       "attaches to programs for %s",
		       t->pid, t->status.name, e[EI_CLASS] == ELFCLASS32 ? "32" : "64", machine,
		       arch_native()->name);
}

static bool is_kernel_thread(pid_t pid)
{
	struct proc_stat st;

	return !proc_stat_read(pid, &st) && st.field[STAT_FLAGS] & PF_KTHREAD;
}

static int look_once(struct target *t, pid_t pid, struct mp_err *err)
{
	struct proc_status *st = &t->status;
	int ret;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->pidfd = t->mem.fd = -1;
	ret = read_status(pid, st);
	if (ret == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, ret, "there is no process %d", pid);
	if (ret)
		return mp_fail(err, MP_EXIT_PERMISSION, ret, "cannot read /proc/%d/status: %s", pid,
			       strerror(-ret));
	if (st->tgid != pid)
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
			       "%d is a thread of process %d; use -p %d", pid, st->tgid, st->tgid);
	if (ended(st))
		return mp_fail(
		    err, MP_EXIT_NOT_USER, -EINVAL,
		    "process %d (%s) is a zombie: it has ended and waits for its parent %d", pid,
		    st->name, st->ppid);
	if (st->no_memory && is_kernel_thread(pid))
		return mp_fail(err, MP_EXIT_NOT_USER, -EINVAL,
			       "process %d (%s) is a kernel thread: it has no heap", pid, st->name);
	if (st->no_memory)
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH, "process %d (%s) is exiting", pid,
			       st->name);
	if (pid == getpid())
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL, "memprof cannot attach to itself");
	if (st->tracer && st->tracer != getpid())
		return refuse_traced(t, t->status.tracer, err);
	ret = check_machine(t, err);
	if (!ret)
		ret = check_pages(err);
	if (ret)
		return ret;
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ret = mem_open(&t->mem, pid);
	if (!ret)
		return 0;
	ret = target_refused(t, ret, err);
	target_close(t);
	return ret;
}

int target_look(struct target *t, pid_t pid, struct mp_err *err)
{
	int ret = look_once(t, pid, err);

	/* While a process is in execve() or exits, access to its /proc files fails as if memprof
	 * had no permission to attach. */
	for (int ms = 0; (ret == -EPERM || ret == -EACCES || ret == -ENOENT) && ms < EXEC_MS;
	     ms++) {
		usleep(1000);
		ret = look_once(t, pid, err);
	}
	return ret;
}

int target_maps(struct target *t, const struct maps **maps)
{
	int ret = t->maps_known ? 0 : maps_read(t->pid, &t->maps);

	t->maps_known = !ret;
	*maps = &t->maps;
	return ret;
}

void target_maps_changed(struct target *t)
{
	maps_free(&t->maps);
	t->maps_known = false;
}

static bool any_waits_in_vfork(const struct target *t)
{
	struct tids tids;
	bool waits = false;

	if (proc_tasks(t->pid, &tids))
		return true;
	vec_for_each (&tids.list, tid) {
		struct thread th = {.tid = *tid};

		waits = waits || thread_waits_in_vfork(t, &th);
	}
	vec_free(&tids.list);
	return waits;
}

/* False also if the kernel was built without kcmp(). */
static bool shares_memory(const struct target *t, pid_t pid)
{
	return !syscall(SYS_kcmp, proc_of(t->pid), pid, KCMP_VM, 0, 0);
}

pid_t target_sharer(const struct target *t)
{
	struct dirent *e;
	pid_t sharer = 0;
	DIR *d = opendir("/proc");

	while (!sharer && d && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		int ms = 0;

		if (pid <= 0 || pid == t->pid)
			continue;
		while (ms < SHARED_MS && shares_memory(t, pid) && !any_waits_in_vfork(t)) {
			usleep(1000);
			ms++;
		}
		if (ms == SHARED_MS)
			sharer = pid;
	}
	if (d)
		closedir(d);
	return sharer;
}
