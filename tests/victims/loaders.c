/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads libraries and calls their allocators.  Reads one command per line and answers "done":
 *
 *	open FILE	dlopen
 *	space FILE	dlmopen in a new namespace
 *	new N		N times the last library's operator new (100 bytes) and delete
 *	blocks N	N times its malloc (200 bytes) and free
 *	keep N		N times its malloc (300 bytes)
 *	make F N SIZE	N times the last library's function F, which allocates SIZE bytes
 *	own N		N times this program's malloc (400 bytes) and free
 *	close		dlclose of the last library
 *	close-all	dlclose of all libraries, the last one first
 *	fork		makes a child and prints its pid
 *
 * At SIGUSR1 such a child does "blocks 100", prints "child ok" and ends.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *alloc_fn(size_t);
typedef void free_fn(void *);

static void *library, *opened[1024];
static size_t nopened;

static void pairs(const char *alloc, const char *release, size_t size, long n)
{
	alloc_fn *a = alloc ? (alloc_fn *)dlsym(library, alloc) : malloc;
	free_fn *f = release ? (free_fn *)dlsym(library, release) : free;

	if (!a || !f) {
		puts("no such function");
		exit(1);
	}
	for (long i = 0; i < n; i++) {
		char *p = a(size);

		if (!p)
			exit(1);
		memset(p, (int)i, size);
		for (size_t k = 0; k < size; k++) {
			if (p[k] != (char)i)
				exit(1);
		}
		f(p);
	}
}

static void none(void *p)
{
	(void)p;
}

static void keep(long n)
{
	alloc_fn *a = (alloc_fn *)dlsym(library, "malloc");

	for (long i = 0; i < n; i++)
		none(a ? a(300) : NULL);
}

static void make(const char *function, long n, size_t size)
{
	alloc_fn *f = (alloc_fn *)dlsym(library, function);

	for (long i = 0; i < n; i++)
		none(f ? f(size) : NULL);
}

static void make_child(void)
{
	sigset_t usr1;
	pid_t pid;
	int sig;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	pid = fork();
	if (pid) {
		printf("%d\n", pid);
		return;
	}
	alarm(600);
	sigwait(&usr1, &sig);
	pairs("malloc", "free", 200, 100);
	puts("child ok");
	fflush(stdout);
	_exit(0);
}

static void obey(char *line)
{
	char *arg = strchr(line, ' '), function[64];
	size_t size;
	long n;

	line[strcspn(line, "\n")] = 0;
	if (arg)
		*arg++ = 0;
	n = arg ? atol(arg) : 0;
	if (!strcmp(line, "open") || !strcmp(line, "space")) {
		library = line[0] == 'o' ? dlopen(arg, RTLD_NOW | RTLD_LOCAL)
					 : dlmopen(LM_ID_NEWLM, arg, RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			puts(dlerror());
			exit(1);
		}
		if (nopened == sizeof(opened) / sizeof(opened[0]))
			exit(2);
		opened[nopened++] = library;
	} else if (!strcmp(line, "new")) {
		pairs("_Znwm", "_ZdlPv", 100, n);
	} else if (!strcmp(line, "blocks")) {
		pairs("malloc", "free", 200, n);
	} else if (!strcmp(line, "keep")) {
		keep(n);
	} else if (!strcmp(line, "make") && arg &&
		   sscanf(arg, "%63s %ld %zu", function, &n, &size) == 3) {
		make(function, n, size);
	} else if (!strcmp(line, "own")) {
		pairs(NULL, NULL, 400, n);
	} else if (!strcmp(line, "fork")) {
		make_child();
	} else if (!strcmp(line, "close")) {
		dlclose(opened[--nopened]);
	} else if (!strcmp(line, "close-all")) {
		while (nopened)
			dlclose(opened[--nopened]);
	} else {
		exit(2);
	}
}

int main(void)
{
	char line[4200];

	alarm(600); /* end even if the test has died */
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		puts("done");
		fflush(stdout);
	}
	puts("ok");
	return 0;
}
