/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes a few allocations of every kind in a loop, and checks the blocks' contents: in the main
 * thread (steps main), or in another thread, which has its own arena (steps other).  A round is
 * short enough to be single-stepped.  There are two threads in both cases, so that malloc uses
 * locks.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES 7

static volatile sig_atomic_t stop;
static long rounds;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void check(const char *p, size_t n, char v)
{
	if (!p || p[0] != v || p[n - 1] != v)
		_exit(1);
}

static void fill(char *p, size_t n, char v)
{
	if (!p)
		_exit(3);
	p[0] = p[n - 1] = v;
}

static void one_round(void)
{
	static const size_t size[SIZES] = {24, 24, 100, 1040, 1500, 40000, 200000};
	char *p[SIZES], *q;

	for (int i = 0; i < SIZES; i++)
		fill(p[i] = malloc(size[i]), size[i], (char)i);
	for (int i = 0; i < SIZES; i += 2) {
		q = realloc(p[i], size[i] + 500);
		check(q, 1, (char)i);
		fill(p[i] = q, size[i], (char)i);
	}
	q = calloc(1, 56);
	check(q, 56, 0);
	free(q);
	if (posix_memalign((void **)&q, 64, 100))
		_exit(3);
	free(q);
	for (int i = 0; i < SIZES; i++) {
		check(p[i], size[i], (char)i);
		free(p[i]);
	}
	malloc_trim(0);
	rounds++;
}

static void *work(void *arg)
{
	(void)arg;
	while (!stop)
		one_round();
	return NULL;
}

static void *idle(void *arg)
{
	(void)arg;
	while (!stop)
		usleep(10000);
	return NULL;
}

int main(int argc, char **argv)
{
	int other = argc > 1 && !strcmp(argv[1], "other");
	pthread_t th;

	signal(SIGTERM, on_term);
	alarm(86400);
	pthread_create(&th, NULL, other ? work : idle, NULL);
	(other ? idle : work)(NULL);
	pthread_join(th, NULL);
	printf("ok %ld\n", rounds);
	return 0;
}
