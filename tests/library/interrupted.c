/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Looks for leaks in a thread with a small stack, while a timer's signals interrupt its system calls.  Usage:
 * interrupted PID */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "memprof.h"

#define STACK (64 << 10) /* bytes */

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void *find(void *arg)
{
	struct memprof_error e;
	memprof_leaks *l;

	for (int i = 0; i < 3; i++) {
		if (memprof_leaks_find(atoi(arg), NULL, &l, &e)) {
			printf("failed: %s\n", e.text);
			return NULL;
		}
		memprof_leaks_free(l);
	}
	puts(signals ? "found" : "no signal came");
	return NULL;
}

int main(int argc, char **argv)
{
	const struct itimerval often = {{0, 500}, {0, 500}};
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */
	pthread_attr_t small;
	pthread_t thread;
	sigset_t set;

	if (argc != 2)
		return 2;
	sigaction(SIGALRM, &act, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	pthread_create(&thread, &small, find, argv[1]);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_join(thread, NULL);
	return 0;
}
