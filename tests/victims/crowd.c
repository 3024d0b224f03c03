/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 *	crowd storm LIBRARY...	threads that load and unload the libraries and call their malloc and
 *free
 *	crowd short N		at a line on stdin N threads, some at a time, that allocate ten
 *blocks of 777 bytes each and free nine of them; then "done"
 *	crowd many N		N threads that wait; each has a block of 777 bytes
 *
 * Says "ready"; at SIGTERM it says "ok" when all it saw was right.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORMS	  6
#define AT_A_TIME 8
#define STACK	  (64u << 10)
#define BLOCK	  777

static volatile sig_atomic_t ended;
static char **libraries;
static int nlibraries;

static void end(int sig)
{
	ended = sig;
}

static void fail(const char *what)
{
	puts(what);
	fflush(stdout);
	_exit(1);
}

static void check(char *p, size_t n, int value)
{
	if (!p)
		fail("no memory");
	memset(p, value, n);
	for (size_t i = 0; i < n; i++) {
		if (p[i] != (char)value)
			fail("a wrong byte");
	}
}

static void *storm(void *arg)
{
	for (unsigned int n = (unsigned int)(size_t)arg; !ended; n++) {
		void *library =
		    dlopen(libraries[n % (unsigned int)nlibraries], RTLD_NOW | RTLD_LOCAL);
		void *(*allocate)(size_t);
		void (*release)(void *);

		if (!library)
			fail(dlerror());
		allocate = (void *(*)(size_t))dlsym(library, "malloc");
		release = (void (*)(void *))dlsym(library, "free");
		for (int i = 0; i < 20; i++) {
			char *p = allocate(BLOCK), *q = malloc(BLOCK);

			check(p, BLOCK, i);
			check(q, BLOCK, (int)n);
			release(p);
			free(q);
		}
		dlclose(library);
	}
	return NULL;
}

static void *leave_one(void *arg)
{
	for (int i = 0; i < 10; i++) {
		char *p = malloc(BLOCK);

		check(p, BLOCK, i);
		if (i)
			free(p);
	}
	return arg;
}

static void *wait_with_one(void *arg)
{
	char *volatile p = malloc(BLOCK);

	check(p, BLOCK, 1);
	while (!ended)
		pause();
	check(p, BLOCK, 2);
	free(p);
	return arg;
}

static void make(pthread_t *thread, void *(*fn)(void *), size_t arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (fn != storm)
		pthread_attr_setstacksize(&attr, STACK);
	if (pthread_create(thread, &attr, fn, (void *)arg))
		fail("no thread");
	pthread_attr_destroy(&attr);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void short_ones(long n)
{
	char line[16];

	ready();
	while (!ended && fgets(line, sizeof(line), stdin)) {
		pthread_t thread[AT_A_TIME];

		for (long i = 0; i < n; i += AT_A_TIME) {
			for (int k = 0; k < AT_A_TIME; k++)
				make(&thread[k], leave_one, 0);
			for (int k = 0; k < AT_A_TIME; k++)
				pthread_join(thread[k], NULL);
		}
		puts("done");
		fflush(stdout);
	}
}

static void waiting(long n, void *(*fn)(void *))
{
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));

	for (long i = 0; i < n; i++)
		make(&thread[i], fn, (size_t)i);
	ready();
	while (!ended)
		pause();
	for (long i = 0; i < n; i++) {
		if (fn == wait_with_one)
			pthread_kill(thread[i], SIGUSR1);
		pthread_join(thread[i], NULL);
	}
	free(thread);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = end};

	if (argc < 3)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	alarm(600); /* a test that dies leaves nothing behind */
	libraries = argv + 2;
	nlibraries = argc - 2;
	if (!strcmp(argv[1], "storm"))
		waiting(STORMS, storm);
	else if (!strcmp(argv[1], "short"))
		short_ones(atol(argv[2]));
	else
		waiting(atol(argv[2]), wait_with_one);
	puts("ok");
	return 0;
}
