/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program keeps what is its own while the library works in it: signal actions and masks, descriptors, threads,
 * limits, environment, children, name, memory.  Two recordings, the search for leaks and heaps run at the same time.
 * Prints what changed.  Usage: host PID PID FOLDER
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memprof.h"

#define SA_RESTORER_ 0x04000000
#define ROUNDS	     12
#define WARM	     4 /* rounds after which the heap must not grow */

struct state {
	struct sigaction action[NSIG];
	sigset_t mask;
	struct rlimit limit[RLIM_NLIMITS];
	unsigned int descriptors, threads, environment;
	mode_t umask;
	char cwd[4096], name[17];
	int subreaper, children, pending;
};

static unsigned int entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void take(struct state *s)
{
	sigset_t pending;

	memset(s, 0, sizeof(*s));
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &s->action[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	for (int i = 0; i < (int)RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &s->limit[i]);
	s->descriptors = entries("/proc/self/fd");
	s->threads = entries("/proc/self/task");
	for (char **e = environ; *e; e++)
		s->environment++;
	s->umask = umask(0);
	umask(s->umask);
	if (!getcwd(s->cwd, sizeof(s->cwd)))
		s->cwd[0] = 0;
	prctl(PR_GET_NAME, s->name);
	prctl(PR_GET_CHILD_SUBREAPER, &s->subreaper);
	s->children = waitpid(-1, NULL, WNOHANG | __WALL) >= 0;
	sigpending(&pending);
	for (int i = 1; i < NSIG; i++)
		s->pending += sigismember(&pending, i) == 1;
}

static void compare(const struct state *a, const struct state *b)
{
	for (int i = 1; i < NSIG; i++) {
		int flags = a->action[i].sa_flags ^ b->action[i].sa_flags;

		/* glibc sets this flag whenever it sets an action. */
		if (a->action[i].sa_handler != b->action[i].sa_handler || (flags & ~SA_RESTORER_))
			printf("changed: signal %d\n", i);
	}
	if (memcmp(&a->mask, &b->mask, sizeof(a->mask)))
		puts("changed: signal mask");
	if (memcmp(a->limit, b->limit, sizeof(a->limit)))
		puts("changed: limits");
	if (a->descriptors != b->descriptors)
		printf("changed: descriptors %u %u\n", a->descriptors, b->descriptors);
	if (a->threads != b->threads)
		printf("changed: threads %u %u\n", a->threads, b->threads);
	if (a->environment != b->environment || a->umask != b->umask || strcmp(a->cwd, b->cwd) ||
	    strcmp(a->name, b->name) || a->subreaper != b->subreaper)
		puts("changed: environment");
	if (b->children || b->pending)
		printf("left: children %d signals %d\n", b->children, b->pending);
}

struct job {
	pid_t pid;
	const char *folder;
	int i, code;
	struct memprof_error e;
};

static void *record(void *arg)
{
	struct memprof_attach_options o = {.size = sizeof(o)};
	struct job *j = arg;
	memprof_session *s;
	char path[4200];

	snprintf(path, sizeof(path), "%s/%d.memprof", j->folder, j->i);
	o.output = path;
	j->code = memprof_attach(j->pid, &o, &s, &j->e);
	if (j->code)
		return NULL;
	j->code = memprof_flush(s, NULL, &j->e);
	if (!j->code)
		j->code = memprof_stop(s, &j->e);
	memprof_free(s);
	return NULL;
}

static void *examine(void *arg)
{
	struct job *j = arg;
	memprof_leaks *l;
	memprof_heap *h;

	j->code = memprof_leaks_find(j->pid, NULL, &l, &j->e);
	if (j->code)
		return NULL;
	memprof_leaks_free(l);
	j->code = memprof_heap_take(j->pid, NULL, &h, &j->e);
	if (!j->code)
		memprof_heap_free(h);
	return NULL;
}

/* Runs @work for both processes, at the same time if @at_once. */
static void run(void *(*work)(void *arg), struct job *j, int at_once)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++) {
		pthread_create(&thread[i], NULL, work, &j[i]);
		if (!at_once)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < 2 && at_once; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		if (j[i].code)
			printf("failed: %d %s\n", j[i].code, j[i].e.text);
	}
}

/* Threads of glibc keep their stacks and arenas, which are not counted here. */
static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

int main(int argc, char **argv)
{
	struct state before, after;
	size_t warm = 0, end;
	struct job job[2];

	if (argc != 4)
		return 2;
	for (int i = 0; i < 2; i++)
		job[i] = (struct job){.pid = atoi(argv[1 + i]), .folder = argv[3], .i = i};
	take(&before);
	for (int i = 0; i < ROUNDS; i++) {
		run(record, job, 1);
		run(examine, job, 1);
		if (i == WARM)
			warm = in_use();
	}
	end = in_use();
	take(&after);
	/* The kernel removes a thread from /proc a moment after pthread_join() returned. */
	for (int i = 0; i < 1000 && after.threads > before.threads; i++) {
		usleep(1000);
		after.threads = entries("/proc/self/task");
	}
	compare(&before, &after);
	printf("grown %ld\n", (long)(end - warm));
	return 0;
}
