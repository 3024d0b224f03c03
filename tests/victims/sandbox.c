/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Enters a sandbox, then works: one thread allocates and checks its blocks, the other one sleeps in
 * a loop.  Prints "ok" and ends at SIGTERM (in strict mode: at the end of stdin).
 *
 *	sandbox strict | allow | without NAME [PROGRAM ARG...] | later NAME | later-raw NAME |
 *		nnp | nodump | mdwe | as MIB | lock |
 *		dispatch | none
 *
 * allow: a filter that kills the process at any system call that this program does not need.
 *
 * without: a filter that kills the process at one system call.  With PROGRAM, executes it.
 *
 * later: at SIGUSR1 installs the filter of "without" and prints "filtered".  At SIGUSR2 forks a
 * child that does the same, prints "child PID" and then works like its parent.  later-raw does not
 * set no_new_privs.
 *
 * dispatch: every system call of the thread that allocates is dispatched to it as SIGSYS
 * (PR_SET_SYSCALL_USER_DISPATCH).  It makes none.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
/* 32-bit Linux has these system calls instead. */
#ifndef SYS_mmap
#define SYS_mmap SYS_mmap2
#endif
#ifndef SYS_newfstatat
#define SYS_newfstatat SYS_fstatat64
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON	     1
#endif
/* Not system call numbers: mmap with PROT_EXEC, madvise with MADV_DONTDUMP. */
#define EXEC_MMAP 1000
#define DONT_DUMP 1001
/* Offset of the low half of an argument in a filter's data. */
#define ARGUMENT(n)                                                                                \
	(offsetof(struct seccomp_data, args[n]) + 4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))

static volatile sig_atomic_t stop;
static volatile sig_atomic_t later;	 /* the signal that was received */
static const char *without;		 /* the system call to be forbidden then */
static bool raw;			 /* without prctl() */
static volatile sig_atomic_t warm, deep; /* the sleeping thread: has allocated; must allocate */
static volatile char diverted; /* the kernel reads it at each system call; 0: not dispatched */

static const struct {
	const char *name;
	int nr;
} names[] = {{"mmap", SYS_mmap},
	     {"memfd_create", SYS_memfd_create},
	     {"mprotect", SYS_mprotect},
	     {"munmap", SYS_munmap},
	     {"madvise", SYS_madvise},
	     {"restart_syscall", SYS_restart_syscall},
	     {"exec-mmap", EXEC_MMAP},
	     {"rt_sigreturn", SYS_rt_sigreturn},
	     {"dont-dump", DONT_DUMP},
	     {"ptrace", SYS_ptrace},
	     {"gettid", SYS_gettid},
	     {"futex", SYS_futex},
	     {"sched_yield", SYS_sched_yield},
	     {"rt_sigprocmask", SYS_rt_sigprocmask},
	     {"process_vm_readv", SYS_process_vm_readv},
	     {"userfaultfd", SYS_userfaultfd}};

static const int needed[] = {SYS_read,
			     SYS_write,
			     SYS_close,
			     SYS_mmap,
			     SYS_munmap,
			     SYS_mprotect,
			     SYS_brk,
			     SYS_futex,
			     SYS_nanosleep,
			     SYS_clock_nanosleep,
			     SYS_rt_sigreturn,
			     SYS_exit,
			     SYS_exit_group,
			     SYS_madvise,
			     SYS_newfstatat,
			     SYS_rt_sigprocmask,
			     SYS_restart_syscall,
			     SYS_lseek,
			     SYS_rseq,
#ifdef SYS_clock_nanosleep_time64
			     SYS_clock_nanosleep_time64,
			     SYS_futex_time64,
#endif
#ifdef SYS__llseek
			     SYS__llseek,
			     SYS_statx,
			     SYS_sigreturn,
#endif
			     SYS_set_robust_list};

static void on_term(int sig)
{
	(void)sig;
	diverted = 0;
	stop = 1;
}

static void on_sys(int sig)
{
	(void)sig;
	diverted = 0;
	(void)!write(1, "a call that is not mine\n", 24);
	_exit(4);
}

static void on_hup(int sig)
{
	(void)sig;
	deep = 1;
}

static void on_later(int sig)
{
	later = sig;
}

static int divert(void)
{
	void *p[2];

	signal(SIGSYS, on_sys);
	/* Let the heap have room for all blocks of work(). */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 16 << 20);
	for (int i = 0; i < 2; i++)
		p[i] = malloc(100000);
	for (int i = 0; i < 2; i++)
		free(p[i]);
	return prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &diverted);
}

static void install(struct sock_filter *code, size_t n)
{
	struct sock_fprog prog = {(unsigned short)n, code};

	if ((!raw && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog)) {
		perror("seccomp");
		exit(3);
	}
}

static void filter_without(int nr)
{
	struct sock_filter one[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_filter exec[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

	if (nr == DONT_DUMP) {
		exec[1].k = SYS_madvise;
		exec[3] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTDUMP, 0, 1);
	}
	if (nr == EXEC_MMAP || nr == DONT_DUMP)
		install(exec, sizeof(exec) / sizeof(exec[0]));
	else
		install(one, sizeof(one) / sizeof(one[0]));
}

static void filter_named(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, name))
			filter_without(names[i].nr);
	}
}

static void filter_later(void)
{
	bool child = later == SIGUSR2;

	later = 0;
	if (child && fork())
		return;
	filter_named(without);
	if (child)
		dprintf(1, "child %d\n", getpid());
	else
		dprintf(1, "filtered\n");
	deep = !raw;
}

static void filter_allow(void)
{
	size_t n = sizeof(needed) / sizeof(needed[0]), k = 0;
	struct sock_filter code[64];

	code[k++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++)
		code[k++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)needed[i], (unsigned char)(n - i), 0);
	code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[k++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	install(code, k);
}

/* Only read, write, exit and sigreturn are allowed. */
static void strict(void)
{
	char c;

	dprintf(1, "ready\n");
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	while (syscall(SYS_read, 0, &c, 1) == 1)
		;
	syscall(SYS_write, 1, "ok\n", 3);
	syscall(SYS_exit, 0);
}

static void limit_address_space(long mib)
{
	struct rlimit r;
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld", &pages) != 1)
		exit(3);
	fclose(f);
	r.rlim_cur = r.rlim_max = (rlim_t)pages * 4096 + ((rlim_t)mib << 20);
	setrlimit(RLIMIT_AS, &r);
}

static void enter(int argc, char **argv)
{
	const char *how = argv[1];
	int bad = 0;

	if (!strcmp(how, "allow"))
		filter_allow();
	else if (!strcmp(how, "nnp"))
		bad = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	else if (!strcmp(how, "nodump"))
		bad = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	else if (!strcmp(how, "mdwe"))
		bad = prctl(PR_SET_MDWE, 1, 0, 0, 0);
	else if (!strcmp(how, "lock"))
		bad = mlockall(MCL_CURRENT | MCL_FUTURE);
	else if (!strcmp(how, "dispatch"))
		bad = divert();
	else if (!strcmp(how, "as") && argc == 3)
		limit_address_space(atol(argv[2]));
	else if (!strcmp(how, "without") && argc >= 3)
		filter_named(argv[2]);
	else if (!strncmp(how, "later", 5) && argc == 3)
		without = argv[2];
	raw = !strcmp(how, "later-raw");
	if (bad) {
		dprintf(1, "cannot: %s\n", strerror(errno));
		_exit(77);
	}
	if (argc > 3) {
		execv(argv[3], argv + 3);
		_exit(77);
	}
}

/* Allocates while it uses @pages pages of the stack. */
static void allocate(int pages)
{
	volatile char page[4096];
	void *volatile p = malloc(16);

	page[0] = 0;
	if (pages > 1)
		allocate(pages - 1);
	free(p);
	page[1] = page[0];
}

/* Does not return: the end of a thread needs calls that may be forbidden. */
static _Noreturn void *sleeper(void *arg)
{
	struct timespec pause = {0, 20000000};
	int pages = 0;

	/* Let the thread's heap make its system calls before the filter forbids them. */
	if (arg)
		free(malloc(16));
	warm = 1;
	for (;;) {
		nanosleep(&pause, NULL);
		if (deep && pages < 100)
			allocate(++pages);
		if (deep && pages == 50)
			dprintf(1, "deep\n");
	}
}

static void work(void)
{
	unsigned int x = 1;

	while (!stop) {
		size_t n;
		char *p;

		x = x * 1664525 + 1013904223;
		n = 1 + (x >> 16) % 2000;
		p = malloc(n);
		if (!p)
			_exit(3);
		memset(p, (char)n, n);
		p = realloc(p, n + 100);
		if (!p || p[0] != (char)n || p[n - 1] != (char)n)
			_exit(1);
		free(p);
		if (later)
			filter_later();
	}
}

int main(int argc, char **argv)
{
	pthread_t th;

	if (argc < 2)
		return 2;
	signal(SIGTERM, on_term);
	signal(SIGUSR1, on_later);
	signal(SIGUSR2, on_later);
	signal(SIGHUP, on_hup);
	alarm(300);
	free(malloc(100000));
	if (!strcmp(argv[1], "strict"))
		strict();
	pthread_create(&th, NULL, sleeper, strncmp(argv[1], "later", 5) ? NULL : argv);
	while (!warm)
		usleep(1000);
	enter(argc, argv);
	dprintf(1, "ready\n");
	diverted = !strcmp(argv[1], "dispatch");
	work();
	dprintf(1, "ok\n");
	_exit(0);
}
