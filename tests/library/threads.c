/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads ask one session at the same time, until the main thread ends the recording.  Prints the marks that were
 * set, and what the last request of each thread returned.  Usage: threads PID OUTPUT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "memprof.h"

#define THREADS 4
#define ROUNDS	10 /* of each thread, at least */

static memprof_session *session;
static unsigned int rounds[THREADS];
static int last[THREADS];
static struct memprof_position at[THREADS];

static int ask(unsigned int thread, unsigned int round)
{
	struct memprof_progress p = {.size = sizeof(p)};
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "t%u-%u", thread, round);
	at[thread].size = sizeof(at[thread]);
	ret = memprof_mark(session, name, &at[thread], NULL);
	memprof_look(session, &p);
	if (!ret)
		printf("mark %s %llu\n", name, (unsigned long long)at[thread].time_ns);
	if (!ret)
		ret = memprof_flush(session, NULL, NULL);
	if (!ret && thread == 0)
		ret = memprof_pause(session, NULL, NULL);
	if (!ret && thread == 0)
		ret = memprof_resume(session, NULL, NULL);
	return ret;
}

static void *work(void *arg)
{
	unsigned int thread = (unsigned int)(size_t)arg;

	for (unsigned int round = 0; !last[thread]; round++) {
		last[thread] = ask(thread, round);
		__atomic_fetch_add(&rounds[thread], 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int fail(const char *what, const struct memprof_error *e)
{
	printf("%s: %d %s\n", what, e->code, e->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct memprof_attach_options o = {.size = sizeof(o)};
	struct memprof_error e;
	pthread_t thread[THREADS];

	if (argc != 3)
		return 2;
	o.output = argv[2];
	o.flags = MEMPROF_HISTORY;
	if (memprof_attach(atoi(argv[1]), &o, &session, &e))
		return fail("attach", &e);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (unsigned int i = 0; i < THREADS; i++) {
		while (__atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) < ROUNDS)
			usleep(1000);
	}
	if (memprof_stop(session, &e))
		return fail("stop", &e);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		printf("last %d\n", last[i]);
	}
	memprof_free(session);
	return 0;
}
