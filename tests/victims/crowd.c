/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * crowd storm LIBRARY...: threads load and unload the libraries and call their malloc and free.
 *
 * crowd edge LIBRARY...: as storm; other threads map and unmap the page after each thread's stack.
 *
 * crowd short N: at each line on stdin, N threads, a few at a time, allocate ten blocks of 777
 * bytes each and free nine of them; then prints "done".
 *
 * crowd many N: N threads wait; each has a block of 777 bytes.
 *
 * Prints "ready", and at SIGTERM "ok" if all contents of blocks were right.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STORMS	  6
#define EDGES	  2
#define PAGE	  4096
#define AT_A_TIME 8
#define STACK	  (64u << 10)
#define BLOCK	  777

static volatile sig_atomic_t ended;
static pthread_mutex_t until_the_end = PTHREAD_MUTEX_INITIALIZER;
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
	pthread_mutex_lock(&until_the_end);
	pthread_mutex_unlock(&until_the_end);
	check(p, BLOCK, 2);
	free(p);
	return arg;
}

static void make(pthread_t *thread, void *(*fn)(void *), size_t arg, void *stack)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstack(&attr, stack, STACK);
	else if (fn != storm)
		pthread_attr_setstacksize(&attr, STACK);
	if (pthread_create(thread, &attr, fn, (void *)arg))
		fail("no thread");
	pthread_attr_destroy(&attr);
}

/* Unmaps by a direct system call, as the dynamic linker does, which no hook sees. */
static void *come_and_go(void *page)
{
	while (!ended) {
		if (mmap(page, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != page)
			fail("no page");
		if (syscall(SYS_munmap, page, PAGE))
			fail("not unmapped");
	}
	return NULL;
}

/* Return: a stack followed by one more page. */
static void *stack_with_edge(void)
{
	char *stack =
	    mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		fail("no stack");
	return stack;
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
				make(&thread[k], leave_one, 0, NULL);
			for (int k = 0; k < AT_A_TIME; k++)
				pthread_join(thread[k], NULL);
		}
		puts("done");
		fflush(stdout);
	}
}

static void wait_for_sigterm(void)
{
	sigset_t set;
	int sig;

	ready();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &sig);
	ended = sig;
}

static void waiting(long n, void *(*fn)(void *))
{
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));

	pthread_mutex_lock(&until_the_end);
	for (long i = 0; i < n; i++)
		make(&thread[i], fn, (size_t)i, NULL);
	wait_for_sigterm();
	pthread_mutex_unlock(&until_the_end);
	for (long i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static void on_the_edge(void)
{
	pthread_t thread[2 * EDGES];

	for (size_t i = 0; i < EDGES; i++) {
		char *stack = stack_with_edge();

		make(&thread[i], storm, i, stack);
		make(&thread[EDGES + i], come_and_go, (size_t)(stack + STACK), NULL);
	}
	wait_for_sigterm();
	for (size_t i = 0; i < 2 * EDGES; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = end};
	sigset_t set;

	if (argc < 3)
		return 2;
	alarm(600); /* end even if the test has died */
	libraries = argv + 2;
	nlibraries = argc - 2;
	if (!strcmp(argv[1], "short")) {
		sigaction(SIGTERM, &action, NULL);
		short_ones(atol(argv[2]));
	} else {
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		if (!strcmp(argv[1], "storm"))
			waiting(STORMS, storm);
		else if (!strcmp(argv[1], "edge"))
			on_the_edge();
		else
			waiting(atol(argv[2]), wait_with_one);
	}
	puts("ok");
	return 0;
}
