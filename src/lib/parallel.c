/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/parallel.h"

#include <sched.h>
#include <stdbool.h>
#include "lib/thread.h"

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
	pthread_t thread;
	bool runs = parts > 1 && !thread_start(&thread, run_second, &s);

	work(arg, 0);
	if (runs)
		pthread_join(thread, NULL);
	else if (parts > 1)
		work(arg, 1);
}
