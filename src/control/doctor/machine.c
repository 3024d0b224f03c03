/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the machine, and memprof's own privileges, allow. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "attach/check.h"
#include "attach/proc/namespace.h"
#include "attach/refusal.h"
#include "attach/track.h"
#include "control/descriptors.h"
#include "control/doctor/findings.h"
#include "lib/human.h"
#include "record/clock.h"
#include "record/kernel/probes.h"
#include "record/kernel/tracefs.h"
#include "record/sideband.h"

#define FILES	   24		 /* as for a recording */
#define LITTLE	   (1ull << 30)	 /* bytes of a disk that a recording can fill soon */
#define NONE	   (64ull << 10) /* bytes that not even its beginning fits in */
#define PROBE_RING (512ull << 10)
#define PAGE	   4096

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

static bool may(const struct proc_status *self, int capability)
{
	return self->cap_effective >> capability & 1;
}

static void kernel(struct notes *n)
{
	long page = sysconf(_SC_PAGESIZE);
	struct utsname u;

	if (uname(&u))
		snprintf(u.release, sizeof(u.release), "?");
	if (page == PAGE)
		note(n, VERDICT_OK, MP_EXIT_OK, "kernel", "", "Linux %s, %s", u.release,
		     arch_native()->name);
	else
		note(n, VERDICT_MISSING, MP_EXIT_ARCH, "kernel", "use a kernel with pages of 4 KiB",
		     "Linux %s, %s, has pages of %ld KiB; memprof supports those of 4 KiB",
		     u.release, arch_native()->name, page / 1024);
}

/* With a process, the attempt to open it decides: it can have allowed this (PR_SET_PTRACER). */
static void ptrace_permission(struct notes *n, const struct proc_status *self)
{
	int scope = check_ptrace_scope();
	const char *forbids = refusal_of_scope(scope);

	if (scope < 3 && may(self, CAP_SYS_PTRACE))
		note(n, VERDICT_OK, MP_EXIT_OK, "ptrace", "",
		     "CAP_SYS_PTRACE is effective (kernel.yama.ptrace_scope is %d)", scope);
	else if (forbids)
		note(n, n->d->pid ? VERDICT_WARNING : VERDICT_MISSING, MP_EXIT_PERMISSION, "ptrace",
		     scope < 3 ? "memprof run needs no permission" : "", "%s", forbids);
	else
		note(n, VERDICT_WARNING, MP_EXIT_OK, "ptrace", "for other users' processes: sudo",
		     "without CAP_SYS_PTRACE memprof may attach only to processes of uid %u",
		     geteuid());
}

/* Filters and files of mappings can be read only with capabilities of the first user namespace. */
static void capabilities(struct notes *n, const struct proc_status *self)
{
	bool admin = may(self, CAP_SYS_ADMIN), inner = namespace_is_inner("user");
	bool files = !inner && may(self, CAP_CHECKPOINT_RESTORE);

	if (admin && !inner)
		note(n, VERDICT_OK, MP_EXIT_OK, "capabilities", "",
		     "seccomp filters and mapped files can be read (CAP_SYS_ADMIN)");
	else
		note(n, VERDICT_WARNING, MP_EXIT_OK, "capabilities",
		     inner ? "run memprof as root of the host" : "sudo, or setcap",
		     "%s: processes with a seccomp filter are refused%s",
		     admin ? "CAP_SYS_ADMIN counts only in this user namespace"
			   : "no CAP_SYS_ADMIN",
		     files ? ""
			   : "; symbols of files that were replaced since the program began are "
			     "not found (CAP_CHECKPOINT_RESTORE)");
	if (self->seccomp)
		note(
		    n, VERDICT_WARNING, MP_EXIT_OK, "own seccomp",
		    "docker run --security-opt seccomp=unconfined, or run memprof on the host",
		    "memprof itself runs under a seccomp filter, so it may not read those of other "
		    "processes, and refuses processes that have one");
}

static void container(struct notes *n)
{
	bool user = namespace_is_inner("user"), pid = namespace_is_inner("pid");

	if (!user && !pid)
		note(n, VERDICT_OK, MP_EXIT_OK, "namespaces", "",
		     "memprof runs in the host's user and pid namespace");
	else
		note(n, VERDICT_WARNING, MP_EXIT_OK, "namespaces",
		     "run memprof on the host to reach all processes",
		     "memprof runs in a container (%s%s%s namespace): only processes in it can be "
		     "attached to",
		     user ? "user" : "", user && pid ? " and pid" : "", user || !pid ? "" : "pid");
}

static void security_modules(struct notes *n)
{
	int fd = open("/sys/kernel/security/lsm", O_RDONLY | O_CLOEXEC);
	char text[200];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (got > 0) {
		text[got] = 0;
		text[strcspn(text, "\n")] = 0;
		note(n, VERDICT_OK, MP_EXIT_OK, "security", "", "security modules: %s", text);
	}
}

static void reading_memory(struct notes *n)
{
	uint64_t from = 42, to = 0;
	struct iovec local = {&to, sizeof(to)}, remote = {&from, sizeof(from)};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof(to))
		note(n, VERDICT_WARNING, MP_EXIT_OK, "memory", "",
		     "process_vm_readv() does not work (%s): with CAP_SYS_PTRACE alone, without "
		     "root, "
		     "the memory of other users' processes cannot be read",
		     strerror(errno));
	else if (fd < 0)
		note(n, VERDICT_WARNING, MP_EXIT_OK, "memory", "",
		     "/proc/PID/pagemap is missing: after detach, pages of text that were patched "
		     "stay private copies");
	else
		note(n, VERDICT_OK, MP_EXIT_OK, "memory", "",
		     "process_vm_readv() and /proc/PID/pagemap work");
	if (fd >= 0)
		close(fd);
	if (track_supported())
		note(n, VERDICT_OK, MP_EXIT_OK, "written pages", "",
		     "the kernel reports written pages: leaks and heap can use --pre-copy");
	else
		note(n, VERDICT_WARNING, MP_EXIT_OK, "written pages", "Linux 6.7 or later",
		     "the kernel does not report written pages (PAGEMAP_SCAN): leaks and heap "
		     "cannot use --pre-copy");
}

/* All of them observe memprof itself, not the process. */
static void perf_events(struct notes *n)
{
	struct mp_err err = {0};
	struct sideband *s = NULL;
	struct probes *p = NULL;
	int ret = sideband_open(getpid(), &s);

	sideband_close(s);
	if (ret)
		note(n, VERDICT_WARNING, MP_EXIT_OK, "perf events",
		     "CAP_PERFMON, or a lower kernel.perf_event_paranoid",
		     "perf_event_open() is not permitted: new libraries are noticed within a "
		     "second instead of at once");
	else
		note(n, VERDICT_OK, MP_EXIT_OK, "perf events", "",
		     "new libraries of a process are noticed at once");
	ret = probes_open(getpid(), arch_native(), PROBE_RING, &p, &err);
	if (!ret)
		ret = probes_add_faults(p, 1024, probes_user_only(getpid()), &err);
	probes_close(p);
	if (ret)
		note(n, VERDICT_WARNING, MP_EXIT_OK, "page faults", "",
		     "--event=page-faults is not possible: %s", err.what);
	else
		note(n, VERDICT_OK, MP_EXIT_OK, "page faults", "",
		     "--event=page-faults is possible%s",
		     probes_user_only(getpid()) ? ", without faults inside system calls" : "");
}

static void uprobes(struct notes *n)
{
	struct mp_err err = {0};
	struct probes *p = NULL;
	bool has = tracefs_has_uprobes();
	int ret = probes_open(getpid(), arch_native(), PROBE_RING, &p, &err);

	probes_close(p);
	if (has && !ret)
		note(n, VERDICT_OK, MP_EXIT_OK, "uprobes", "", "--via=kernel is possible");
	else
		note(n, VERDICT_WARNING, MP_EXIT_OK, "uprobes", "",
		     "--via=kernel is not possible: %s",
		     ret ? err.what
			 : "there is no tracefs with uprobe_events, or it is not permitted to "
			   "write there");
}

void doctor_machine(struct notes *n)
{
	struct proc_status self = {0};
	struct mp_err err = {0};

	ignore_result(proc_status_read(getpid(), 0, &self)); /* then no capability is known */
	kernel(n);
	if (!clock_readable())
		note(n, VERDICT_MISSING, MP_EXIT_ARCH, "clock", "",
		     "programs cannot read this processor's time counter");
	ptrace_permission(n, &self);
	capabilities(n, &self);
	container(n);
	security_modules(n);
	reading_memory(n);
	perf_events(n);
	uprobes(n);
	ignore_result(want_descriptors(FILES, &err)); /* the error is noted */
	note_check(n, "open files", &err, "raise ulimit -n", "enough files can be opened");
}

void doctor_output(struct notes *n)
{
	const char *path = n->d->output, *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct statvfs fs;
	uint64_t left;

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) || statvfs(dir, &fs)) {
		note(n, VERDICT_MISSING, MP_EXIT_OUTPUT, "output",
		     "name another place: -o /somewhere/else/rec.memprof",
		     "a recording cannot be written to %s: %s", dir, strerror(errno));
		return;
	}
	left = (uint64_t)(geteuid() ? fs.f_bavail : fs.f_bfree) * fs.f_frsize;
	if (left < NONE)
		note(n, VERDICT_MISSING, MP_EXIT_OUTPUT, "output",
		     "name another place: -o /somewhere/else/rec.memprof", "the disk of %s is full",
		     dir);
	else
		note(n, left < LITTLE ? VERDICT_WARNING : VERDICT_OK, MP_EXIT_OK, "output",
		     left < LITTLE ? "--sample 512k makes recordings much smaller" : "",
		     "%s are free in %s", human(left), dir);
}
