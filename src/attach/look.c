/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks before anything is changed: can memprof attach to this process, and if not, why? */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attach/check.h"
#include "attach/proc/stat.h"

#define PAGE	   4096
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

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
	ret = check_status(pid, st);
	if (ret == -ESRCH)
		return mp_fail(err, MP_EXIT_NO_PROCESS, ret, "there is no process %d", pid);
	if (ret)
		return mp_fail(err, MP_EXIT_PERMISSION, ret, "cannot read /proc/%d/status: %s", pid,
			       strerror(-ret));
	if (st->tgid != pid)
		return mp_fail(err, MP_EXIT_NO_PROCESS, -ESRCH,
			       "%d is a thread of process %d; use -p %d", pid, st->tgid, st->tgid);
	if (check_ended(st))
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
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "a process cannot attach to itself, only to another one");
	if (st->tracer && st->tracer != gettid())
		return check_traced(t, t->status.tracer, err);
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
