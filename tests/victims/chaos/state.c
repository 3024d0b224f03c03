/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that the attributes of the process and its threads do not change. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "chaos.h"

#define LIMITS	16
#define SIGNALS 64
#define UMASK	0127

/* Attributes of the process, and of the calling thread, which began with those of the main thread.
 */
struct kept {
	struct rlimit limits[LIMITS];
	void *handlers[SIGNALS];
	int flags[SIGNALS];
	char cwd[256];
	uid_t ids[4];
	int personality, dumpable, subreaper, priority, policy, no_new_privs, keep_caps,
	    death_signal;
	long timer_slack;
	cpu_set_t cpus;
	sigset_t mask;
	stack_t stack;
};

static struct kept first;
static uint64_t descriptors;
static char umask_line[32];

static void look(struct kept *k)
{
	memset(k, 0, sizeof(*k));
	for (int i = 0; i < LIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &k->limits[i]);
	for (int i = 1; i < SIGNALS; i++) {
		struct sigaction sa;

		if (!sigaction(i, NULL, &sa)) {
			k->handlers[i] = (void *)sa.sa_handler;
			k->flags[i] = sa.sa_flags;
		}
	}
	if (!getcwd(k->cwd, sizeof(k->cwd)))
		strcpy(k->cwd, "(gone)");
	k->ids[0] = getuid();
	k->ids[1] = geteuid();
	k->ids[2] = getgid();
	k->ids[3] = getegid();
	k->personality = personality(0xffffffff);
	k->dumpable = prctl(PR_GET_DUMPABLE);
	prctl(PR_GET_CHILD_SUBREAPER, &k->subreaper);
	k->priority = getpriority(PRIO_PROCESS, 0);
	k->policy = sched_getscheduler(0);
	k->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	k->keep_caps = prctl(PR_GET_KEEPCAPS);
	prctl(PR_GET_PDEATHSIG, &k->death_signal);
	k->timer_slack = prctl(PR_GET_TIMERSLACK);
	sched_getaffinity(0, sizeof(k->cpus), &k->cpus);
	pthread_sigmask(SIG_BLOCK, NULL, &k->mask);
	sigaltstack(NULL, &k->stack);
}

/* Copies the line of /proc/self/status that begins with @name to @text. */
static void status_line(const char *name, char *text, size_t n)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	text[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			snprintf(text, n, "%s", line);
	}
	if (f)
		fclose(f);
}

static void state_round(struct actor *a)
{
	char line[32];
	struct kept k;
	sigset_t set;

	pause_us(10000);
	look(&k);
	/* All threads have the same attributes, except the parent death signal. */
	k.death_signal = first.death_signal;
	must(a, !memcmp(k.limits, first.limits, sizeof(k.limits)),
	     "limits: expected those of the beginning");
	must(a,
	     !memcmp(k.handlers, first.handlers, sizeof(k.handlers)) &&
		 !memcmp(k.flags, first.flags, sizeof(k.flags)),
	     "sigaction: expected the dispositions of the beginning");
	must(a, !strcmp(k.cwd, first.cwd), "getcwd: expected %s, got %s", first.cwd, k.cwd);
	must(a, !memcmp(&k.mask, &first.mask, _NSIG / 8),
	     "signal mask: expected that of the beginning");
	must(a, k.personality == first.personality, "personality: expected %#x, got %#x",
	     first.personality, k.personality);
	must(a, k.dumpable == first.dumpable, "PR_GET_DUMPABLE: expected %d, got %d",
	     first.dumpable, k.dumpable);
	must(a, !memcmp(&k, &first, sizeof(k)),
	     "expected the thread's attributes of the beginning");
	status_line("Umask", line, sizeof(line));
	must(a, !strcmp(line, umask_line), "umask: expected %s, got %s", umask_line, line);
	sigpending(&set);
	must(a, !sigismember(&set, SIGTRAP) && !sigismember(&set, SIGSTOP),
	     "expected no SIGTRAP or SIGSTOP to be pending");
}

static bool is_number(const char *name)
{
	return name[0] >= '0' && name[0] <= '9';
}

static long count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long n = 0;

	while (d && (e = readdir(d)))
		n += is_number(e->d_name);
	if (d)
		closedir(d);
	return n;
}

/* Return: the open descriptors, as bits.  Reports those that are not in @known if @a is not NULL.
 */
static uint64_t open_descriptors(struct actor *a, uint64_t known)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t found = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);
		char path[64], link[128] = "";

		if (!is_number(e->d_name) || fd == dirfd(d) || fd > 63)
			continue;
		found |= 1ull << fd;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (!a || known >> fd & 1 || readlink(path, link, sizeof(link) - 1) < 0)
			continue;
		if (killed && strstr(link, "[userfaultfd]"))
			a->cut++;
		else
			must(a, false, "descriptors: expected those of the beginning, got %d: %s",
			     fd, link);
	}
	if (d)
		closedir(d);
	return found;
}

void state_prepare(void)
{
	umask(UMASK);
	status_line("Umask", umask_line, sizeof(umask_line));
	look(&first);
	descriptors = open_descriptors(NULL, 0);
}

void state_at_end(struct actor *a)
{
	char line[256];
	int status;
	FILE *f;
	pid_t pid;

	must(a, !(descriptors & ~open_descriptors(a, descriptors)),
	     "descriptors: expected none to be closed");
	/* A thread that was joined can be visible for a moment. */
	for (int i = 0; i < 1000 && count_threads() > 1; i++)
		usleep(1000);
	must(a, count_threads() == 1, "threads: expected one, got %ld", count_threads());
	pid = waitpid(-1, &status, __WALL | WNOHANG);
	must(a, pid == -1 && errno == ECHILD, "children: expected none, got %d", pid);
	status_line("TracerPid", line, sizeof(line));
	must(a, !strcmp(line, "TracerPid:\t0\n"), "expected no tracer, got %s", line);
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f))
		must(a, !strstr(line, "memprof-session"), "mappings: expected its own, got %s",
		     line);
	if (f)
		fclose(f);
}

struct actor state[] = {
    {.name = "state",
     .round = state_round,
     .guaranteed =
	 "dispositions, masks, alternate stacks, limits, umask, cwd, personality, scheduling, ids "
	 "and prctl() "
	 "attributes stay; at the end descriptors, threads and children are what they were",
     .but = "kill -9 of --pre-copy: an unused userfaultfd may stay"},
    {0}};
