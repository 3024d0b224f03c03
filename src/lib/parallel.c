/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

struct second {
	void (*work)(void *arg, unsigned int part);
	void *arg;
};

unsigned int parallel_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

unsigned int parallel_parts(void)
{
	return parallel_processors() > 1 ? 2 : 1;
}

static void *run_second(void *arg)
{
	const struct second *s = arg;

	s->work(s->arg, 1);
	return NULL;
}

void parallel_run(unsigned int parts, void (*work)(void *arg, unsigned int part), void *arg)
{
	struct second s = {work, arg};
	sigset_t all, before;
	pthread_t thread;
	bool runs = false;

	if (parts > 1) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		runs = !pthread_create(&thread, NULL, run_second, &s);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	work(arg, 0);
	if (runs)
		pthread_join(thread, NULL);
	else if (parts > 1)
		work(arg, 1);
}
