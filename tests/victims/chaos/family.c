/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes children and waits for them in every way.  One thread does all of this, so that it sees
 * only its own children. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "chaos.h"
#include "inject/family.h"

#define KEPT   64
#define CORE_S 1 /* minimum time between two crashes */

bool plain_waits_only;
static char program[512];
static volatile int children_died;
static volatile pid_t last_died;
static char *kept[KEPT];
extern char **environ;

static void on_child(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	children_died++;
	last_died = info->si_pid;
}

/* Checks in a child that its memory is a copy of the parent's, and that it can allocate. */
static int check_child(int code)
{
	for (int i = 0; i < KEPT; i++) {
		char *p = malloc(100 + (size_t)i);

		memset(p, i, 100);
		if (kept[i][0] != i || kept[i][99] != i || p[99] != i)
			return 99;
		free(p);
	}
	return code;
}

static pid_t forked(int code)
{
	pid_t pid = fork();

	if (!pid)
		_exit(check_child(code));
	if (pid < 0)
		give_up("fork");
	return pid;
}

static void ended(struct actor *a, const char *how, pid_t got, pid_t pid, int status, int code)
{
	must(a, got == pid && WIFEXITED(status) && WEXITSTATUS(status) == code,
	     "%s: expected child %d to exit with %d, got %d (%s) with status %#x", how, pid, code,
	     got, got < 0 ? strerror(errno) : "", status);
}

static void fork_round(struct actor *a)
{
	pid_t pid[4];
	int status;

	for (int i = 0; i < 4; i++)
		pid[i] = forked(10 + i);
	for (int i = 3; i >= 0; i--) {
		struct rusage usage;
		pid_t got = wait4(pid[i], &status, 0, &usage);

		ended(a, "wait4", got, pid[i], status, 10 + i);
	}
}

static void spawn_round(struct actor *a)
{
	char *argv[] = {program, "--exit", "33", NULL};
	int status = 0, error;
	pid_t pid, got;

	pid = vfork();
	if (!pid) {
		execv(program, argv);
		_exit(98);
	}
	got = waitpid(pid, &status, 0);
	ended(a, "vfork and execv", got, pid, status, 33);
	argv[2] = "34";
	error = posix_spawn(&pid, program, NULL, NULL, argv, environ);
	must(a, !error, "posix_spawn: expected 0, got %s", strerror(error));
	got = waitpid(pid, &status, 0);
	ended(a, "posix_spawn", got, pid, status, 34);
	pid = fork();
	if (!pid) {
		argv[2] = "35";
		execv(program, argv);
		_exit(98);
	}
	got = waitpid(pid, &status, 0);
	ended(a, "fork and execv", got, pid, status, 35);
}

static void *stay(void *arg)
{
	pause();
	return arg;
}

static void *execute(void *arg)
{
	char *argv[] = {program, "--exit", "36", NULL};

	execv(program, argv);
	return arg;
}

/* Makes a child with several threads; one that is not its main thread executes another program. */
static void exec_round(struct actor *a)
{
	pid_t pid = fork(), got;
	int status = 0;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		begin(stay, NULL);
		begin(stay, NULL);
		begin(execute, NULL);
		for (;;)
			pause();
	}
	got = waitpid(pid, &status, 0);
	ended(a, "execv in a thread", got, pid, status, 36);
}

static const struct form {
	const char *name;
	int options;
	idtype_t type; /* of waitid() */
	pid_t pid;     /* of wait4(); -2: the child's */
	bool id;
} forms[] = {{"wait4(-1)", 0, 0, -1, false},
	     {"wait4(PID)", 0, 0, -2, false},
	     {"wait4(0)", 0, 0, 0, false},
	     {"wait4(-1, __WNOTHREAD)", __WNOTHREAD, 0, -1, false},
	     {"waitid(P_ALL)", WEXITED, P_ALL, 0, true},
	     {"waitid(P_PID)", WEXITED | WSTOPPED, P_PID, -2, true},
	     {"waitid(P_PGID)", WEXITED, P_PGID, 0, true},
	     {"wait4(-1, __WALL)", __WALL, 0, -1, false},
	     {"wait4(0, __WALL|WUNTRACED)", __WALL | WUNTRACED, 0, 0, false},
	     {"waitid(P_ALL, __WALL)", WEXITED | __WALL, P_ALL, 0, true}};
#define FORMS (sizeof(forms) / sizeof(forms[0]))
#define PLAIN 7 /* number of the first forms, which have no __WALL */

/* Each form must return the only child, and after it there must be no other. */
static void waits_round(struct actor *a)
{
	static unsigned next;
	const struct form *f = &forms[next++ % (plain_waits_only ? PLAIN : FORMS)];
	int code = (int)(next % 50), status = 0;
	siginfo_t info = {0};
	pid_t pid, got;

	unblock(SIGCHLD); /* the handler takes a pending one now */
	children_died = 0;
	pid = fork();
	if (!pid) {
		usleep(next % 3 * 4000);
		_exit(code);
	}
	got = f->id ? waitid(f->type, f->pid == -2 ? (id_t)pid : (id_t)getpgrp(), &info, f->options)
		    : wait4(f->pid == -2 ? pid : f->pid, &status, f->options, NULL);
	if (f->id)
		must(a,
		     !got && info.si_pid == pid && info.si_code == CLD_EXITED &&
			 info.si_status == code,
		     "%s: expected child %d with %d, got %d, child %d with %d (%s)", f->name, pid,
		     code, got, info.si_pid, info.si_status, got ? strerror(errno) : "");
	else
		ended(a, f->name, got, pid, status, code);
	block(SIGCHLD);
	must(a, children_died == 1 && last_died == pid,
	     "SIGCHLD: expected one of %d, got %d, the last of %d", pid, children_died, last_died);
	for (int flags = 0; flags < (plain_waits_only ? 1 : 3); flags++) {
		static const int more[] = {0, __WALL, __WCLONE};

		errno = 0;
		got = waitpid(-1, &status, WNOHANG | more[flags]);
		must(a, got == -1 && errno == ECHILD,
		     "waitpid(-1, %#x): expected ECHILD, got %d (%s)", more[flags], got,
		     strerror(errno));
		info.si_pid = 0;
		got = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | more[flags]);
		must(a, got == -1 && errno == ECHILD,
		     "waitid(P_ALL, %#x): expected ECHILD, got child %d (%s)", more[flags],
		     info.si_pid, strerror(errno));
	}
}

/* wait() must report once each that a child was stopped, continued and killed. */
static void job_round(struct actor *a)
{
	int status = 0, fd;
	siginfo_t info = {0};
	pid_t pid = fork(), got;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	kill(pid, SIGSTOP);
	got = waitpid(pid, &status, WUNTRACED);
	must(a, got == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP,
	     "WUNTRACED: expected child %d stopped, got %d with %#x", pid, got, status);
	got = waitpid(pid, &status, WUNTRACED | WNOHANG);
	must(a, !got, "WUNTRACED: expected to be told once, got %d with %#x", got, status);
	kill(pid, SIGCONT);
	got = waitpid(pid, &status, WCONTINUED);
	must(a, got == pid && WIFCONTINUED(status),
	     "WCONTINUED: expected child %d, got %d with %#x", pid, got, status);
	kill(pid, SIGKILL);
	got = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	must(a, !got && info.si_code == CLD_KILLED && info.si_status == SIGKILL,
	     "WNOWAIT: expected to be told of SIGKILL, got %d (code %d)", info.si_status,
	     info.si_code);
	got = waitpid(pid, &status, 0);
	must(a, got == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	     "waitpid: expected child %d killed, got %d with %#x", pid, got, status);
#ifdef SYS_pidfd_open
	pid = forked(44);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		struct pollfd p = {fd, POLLIN, 0};

		got = poll(&p, 1, 60000);
		must(a, got == 1, "poll of a pidfd: expected 1, got %d (%s)", got, strerror(errno));
		info.si_pid = 0;
		got = waitid((idtype_t)3 /* P_PIDFD */, (id_t)fd, &info, WEXITED);
		must(a, !got && info.si_pid == pid && info.si_status == 44,
		     "P_PIDFD: expected child %d with 44, got %d with %d", pid, info.si_pid,
		     info.si_status);
		close(fd);
	} else {
		waitpid(pid, NULL, 0);
	}
#else
	(void)fd;
#endif
}

static bool core_goes_to_cwd(void)
{
	char pattern[128] = "";
	int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, pattern, sizeof(pattern) - 1);

	close(fd);
	return n > 1 && !strcmp(pattern, "core\n");
}

static void remove_cores(const char *dir)
{
	char path[300];

	/* The caller has removed a core whose name has the pid (kernel.core_uses_pid). */
	snprintf(path, sizeof(path), "%s/core", dir);
	unlink(path);
	rmdir(dir);
}

/* Makes a child that crashes: wait() must report it, and there must be a core if permitted. */
static void cores_round(struct actor *a)
{
	static int64_t last;
	static char dir[] = "chaos-core-XXXXXX";
	struct rlimit all, none = {0, 0};
	bool here = core_goes_to_cwd();
	Elf64_Ehdr head = {0};
	char path[300];
	int status = 0, fd;
	struct stat st;
	pid_t pid, got;

	if (last && now_ns() - last < CORE_S * 1000000000ll)
		return;
	strcpy(dir, "chaos-core-XXXXXX");
	getrlimit(RLIMIT_CORE, &all);
	here = here && all.rlim_max == RLIM_INFINITY && mkdtemp(dir);
	pid = fork();
	if (!pid) {
		all.rlim_cur = all.rlim_max;
		setrlimit(RLIMIT_CORE, here ? &all : &none);
		signal(SIGSEGV, SIG_DFL);
		if (here && chdir(dir))
			_exit(97);
		raise(SIGSEGV);
		_exit(96);
	}
	got = waitpid(pid, &status, 0);
	must(a, got == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	     "crash: expected child %d to die of SIGSEGV, got %d with %#x", pid, got, status);
	if (here) {
		snprintf(path, sizeof(path), "%s/core", dir);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			snprintf(path, sizeof(path), "%s/core.%d", dir, pid);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
		must(a, fd >= 0 && WCOREDUMP(status), "crash: expected a core, there is none");
		if (fd >= 0) {
			must(a,
			     read(fd, &head, sizeof(head)) == sizeof(head) &&
				 !memcmp(head.e_ident, ELFMAG, 4) && head.e_type == ET_CORE &&
				 !fstat(fd, &st) && st.st_blocks < 1 << 19,
			     "crash: expected a core below 256 MiB, got %lld MiB",
			     (long long)st.st_blocks >> 11);
			close(fd);
			unlink(path);
		}
		remove_cores(dir);
	}
	last = now_ns();
}

void family_prepare(const char *name)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0)
		give_up(name);
	for (int i = 0; i < KEPT; i++) {
		kept[i] = malloc(100);
		memset(kept[i], i, 100);
	}
	handle(SIGCHLD, on_child, SA_RESTART);
}

struct actor family[] = {
    {.name = "fork",
     .round = fork_round,
     .alone = true,
     .guaranteed = "children have the parent's memory, allocate, and exit with their status"},
    {.name = "spawn",
     .round = spawn_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "vfork(), posix_spawn(), execv(): the program's exit status comes"},
    {.name = "exec",
     .round = exec_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "execv() by a thread of a child with several: its exit status comes"},
    {.name = "waits",
     .round = waits_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "wait4() and waitid() in every form, with __WALL and __WCLONE, and SIGCHLD: the "
		   "program's own "
		   "children, each once, else ECHILD",
     .but = "--gentle, kill -9, and where the program or its init does not reap: with __WALL and "
	    "__WCLONE "
	    "(\"The copy's parent\")"},
    {.name = "job-control",
     .round = job_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "a child's stop, continuation, death by a signal, its pidfd: each is told once"},
    {.name = "snapshots",
     .round = snapshot_round,
     .alone = true,
     .same_thread = true,
     .guaranteed = "a child sees the memory of the moment of fork(), parent and child only what "
		   "they wrote then"},
    {.name = "cores",
     .round = cores_round,
     .alone = true,
     .same_thread = true,
     .guaranteed =
	 "a child that crashes dies of its signal and leaves a core without memprof's session"},
    {0}};
