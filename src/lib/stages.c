/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/stages.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include "lib/parallel.h"
#include "lib/thread.h"

struct row;

struct runner {
	struct row *row;
	unsigned int stage;
	pthread_t thread;
};

struct row {
	const struct stages *s;
	sem_t ready[MAX_STAGES]; /* slots that the stage may work on */
	atomic_bool over;	 /* the last stage has ended */
	struct runner runner[MAX_STAGES];
};

static void run_stage(struct row *r, unsigned int stage)
{
	bool more = true;

	for (unsigned int i = 0; more; i = i + 1 == r->s->slots ? 0 : i + 1) {
		while (sem_wait(&r->ready[stage])) /* a signal came */
			;
		if (atomic_load(&r->over))
			return;
		more = r->s->work(r->s->arg, stage, i);
		sem_post(&r->ready[(stage + 1) % r->s->n]);
	}
}

static void *run_thread(void *arg)
{
	const struct runner *r = arg;

	run_stage(r->row, r->stage);
	return NULL;
}

/* Return: the number of threads that were made, for the stages from 0 on. */
static unsigned int start_row(struct row *r)
{
	unsigned int n = 0;

	while (n + 1 < r->s->n && !thread_start(&r->runner[n].thread, run_thread, &r->runner[n]))
		n++;
	return n;
}

static void run_alone(const struct stages *s)
{
	bool more = true;

	for (unsigned int i = 0; more; i = i + 1 == s->slots ? 0 : i + 1) {
		for (unsigned int stage = 0; stage < s->n; stage++)
			more &= s->work(s->arg, stage, i);
	}
}

void stages_run(const struct stages *s)
{
	struct row r = {.s = s};
	unsigned int threads;

	if (parallel_parts() < 2) {
		run_alone(s);
		return;
	}
	for (unsigned int i = 0; i < s->n; i++) {
		sem_init(&r.ready[i], 0, 0);
		r.runner[i] = (struct runner){.row = &r, .stage = i};
	}
	threads = start_row(&r);
	if (threads + 1 == s->n) {
		for (unsigned int i = 0; i < s->slots; i++)
			sem_post(&r.ready[0]);
		run_stage(&r, s->n - 1);
	}
	atomic_store(&r.over, true);
	for (unsigned int i = 0; i < threads; i++)
		sem_post(&r.ready[i]);
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(r.runner[i].thread, NULL);
	for (unsigned int i = 0; i < s->n; i++)
		sem_destroy(&r.ready[i]);
	if (threads + 1 < s->n)
		run_alone(s);
}
