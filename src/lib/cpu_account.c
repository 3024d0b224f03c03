/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/cpu_account.h"

#include "lib/deadline.h"

static _Thread_local struct cpu_account *mine;

struct cpu_account *cpu_account_mine(void)
{
	return mine;
}

void cpu_account_enter(struct cpu_account *a, struct cpu_member *m)
{
	pthread_getcpuclockid(pthread_self(), &m->clock);
	pthread_mutex_lock(&a->lock);
	m->next = a->running;
	m->at = &a->running;
	if (m->next)
		m->next->at = &m->next;
	a->running = m;
	pthread_mutex_unlock(&a->lock);
	mine = a;
}

void cpu_account_leave(struct cpu_account *a, struct cpu_member *m)
{
	mine = NULL;
	pthread_mutex_lock(&a->lock);
	*m->at = m->next;
	if (m->next)
		m->next->at = m->at;
	a->ended_ns += clock_read_ns(m->clock);
	pthread_mutex_unlock(&a->lock);
}

void cpu_account_begin(struct cpu_account *a)
{
	*a = (struct cpu_account){0};
	pthread_mutex_init(&a->lock, NULL);
	cpu_account_enter(a, &a->first);
}

void cpu_account_end(struct cpu_account *a)
{
	cpu_account_leave(a, &a->first);
	pthread_mutex_destroy(&a->lock);
}

uint64_t cpu_account_read(void)
{
	struct cpu_account *a = mine;
	uint64_t ns;

	if (!a)
		return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_mutex_lock(&a->lock);
	ns = a->ended_ns;
	for (const struct cpu_member *m = a->running; m; m = m->next)
		ns += clock_read_ns(m->clock);
	pthread_mutex_unlock(&a->lock);
	return ns;
}
