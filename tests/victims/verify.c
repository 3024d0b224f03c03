/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks its own memory: threads fill blocks with patterns and check them later.  verify [THREADS
 * [SECONDS [huge]]] runs until SIGTERM, then prints "ok ROUNDS" and exits 0; after SECONDS seconds
 * SIGALRM kills it.  At a wrong byte it exits 1.  The threads begin when all of them exist, so the
 * list of threads does not change afterwards.  With "huge" the threads' stacks are executable and
 * in huge pages, if the kernel has them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 200

static volatile sig_atomic_t stop;
static long rounds[64];
static pthread_barrier_t all;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void check(const unsigned char *p, size_t n, unsigned char v)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != v) {
			dprintf(2, "wrong byte\n");
			_exit(1);
		}
	}
}

static void *run(void *arg)
{
	long t = (long)arg;
	unsigned int x = (unsigned int)t + 1;
	unsigned char *p[BLOCKS] = {0}, v[BLOCKS] = {0};
	size_t n[BLOCKS] = {0};

	pthread_barrier_wait(&all);
	while (!stop) {
		unsigned int i;

		x = x * 1664525 + 1013904223;
		i = (x >> 8) % BLOCKS;
		if (p[i] && x >> 30 == 0) {
			size_t more = n[i] + (x >> 16) % 300;
			unsigned char *q = realloc(p[i], more);

			if (!q)
				_exit(3);
			check(q, n[i], v[i]);
			p[i] = q;
			n[i] = more;
			memset(q, v[i], more);
		} else if (p[i]) {
			check(p[i], n[i], v[i]);
			free(p[i]);
			p[i] = NULL;
		} else {
			n[i] = 1 + (x >> 12) % 700;
			v[i] = (unsigned char)x;
			p[i] = x & 1024 ? malloc(n[i]) : calloc(1, n[i]);
			if (!p[i])
				_exit(3);
			if (!(x & 1024))
				check(p[i], n[i], 0);
			memset(p[i], v[i], n[i]);
		}
		rounds[t]++;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(p[i]);
	return NULL;
}

/* Sets a stack of two huge pages, aligned to one. */
static void huge_stack(pthread_attr_t *attr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), huge = page * (page / 8);
	char *p = mmap(NULL, 3 * huge, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(3);
	p += huge - (uintptr_t)p % huge;
	madvise(p, 2 * huge, MADV_HUGEPAGE);
	memset(p, 0, 2 * huge);
	if (pthread_attr_setstack(attr, p, 2 * huge))
		_exit(3);
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4, sum = 0;
	pthread_attr_t attr;
	pthread_t th[64];

	pthread_attr_init(&attr);
	signal(SIGTERM, on_term);
	alarm(argc > 2 ? (unsigned)atol(argv[2]) : 600); /* end even if the test has died */
	pthread_barrier_init(&all, NULL, (unsigned int)threads + 1);
	for (long t = 0; t < threads; t++) {
		if (argc > 3)
			huge_stack(&attr);
		pthread_create(&th[t], &attr, run, (void *)t);
	}
	pthread_barrier_wait(&all);
	for (long t = 0; t < threads; t++)
		pthread_join(th[t], NULL);
	for (long t = 0; t < threads; t++)
		sum += rounds[t];
	printf("ok %ld\n", sum);
	return 0;
}
