/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Detects what a debugger changes about signals and restartable sequences:
 *
 *	signals queue	a thread queues real-time signals with the values 1, 2, 3, ...; each
 *			must be received once, in order, with its siginfo
 *	signals rseq	threads increment counters of their CPU in restartable sequences; the
 *			sum must be right
 *
 * SIGTRAP is blocked and must not become pending.  Prints "ok N" at SIGTERM.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "count_once.h"

#define THREADS 6
#define CPUS	1024

static volatile sig_atomic_t stop, received;
static volatile long seen;
__attribute__((unused)) static long counter[CPUS][8] __attribute__((aligned(64)));

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void wrong(const char *what)
{
	(void)!write(2, what, strlen(what));
	_exit(1);
}

static void on_queued(int sig, siginfo_t *info, void *context)
{
	char *p;

	(void)sig;
	(void)context;
	if (info->si_code != SI_QUEUE || info->si_pid != getpid() ||
	    info->si_value.sival_int != (int)(seen + 1))
		wrong("a signal is lost, doubled or out of order\n");
	seen++;
	p = malloc(100); /* no other code allocates, so this never interrupts malloc */
	p[99] = 1;
	free(p);
}

/* Not until stop: a signal that is queued after that must still be received. */
static void *receive(void *arg)
{
	(void)arg;
	while (!received)
		usleep(1000);
	return NULL;
}

static long queue(void)
{
	struct sigaction sa = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO};
	union sigval value = {0};
	pthread_t th;
	sigset_t set;

	sigaction(SIGRTMIN + 3, &sa, NULL);
	pthread_create(&th, NULL, receive, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (!stop) {
		value.sival_int++;
		/* Wait if too many are pending, so that none is refused. */
		while (sigqueue(getpid(), SIGRTMIN + 3, value) && errno == EAGAIN)
			usleep(100);
		while (value.sival_int - seen > 100)
			usleep(10);
	}
	while (seen < value.sival_int)
		usleep(1000);
	received = 1;
	pthread_join(th, NULL);
	return seen;
}

#if defined(__x86_64__)
static void *count(void *arg)
{
	struct rseq *rs = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	long *done = arg;

	while (!stop)
		*done += count_once(rs, counter);
	return NULL;
}

static long sequences(void)
{
	long done[THREADS][8] = {0}, sum = 0, counted = 0;
	pthread_t th[THREADS];

	for (int i = 1; i < THREADS; i++)
		pthread_create(&th[i], NULL, count, done[i]);
	count(done[0]);
	for (int i = 1; i < THREADS; i++)
		pthread_join(th[i], NULL);
	for (int i = 0; i < THREADS; i++)
		sum += done[i][0];
	for (int i = 0; i < CPUS; i++)
		counted += counter[i][0];
	if (sum != counted)
		wrong("counts were lost in a restartable sequence\n");
	return sum;
}

#else
static long sequences(void)
{
	wrong("restartable sequences are written for x86-64 only\n");
	return 0;
}
#endif

int main(int argc, char **argv)
{
	sigset_t set;
	long n;

	alarm(600);
	signal(SIGTERM, on_term);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	n = argc > 1 && !strcmp(argv[1], "rseq") ? sequences() : queue();
	sigpending(&set);
	if (sigismember(&set, SIGTRAP))
		wrong("a SIGTRAP came\n");
	printf("ok %ld\n", n);
	return 0;
}
