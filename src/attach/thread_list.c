/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "attach/threads.h"

#include <stdlib.h>

struct thread *thread_find(struct target *t, pid_t tid)
{
	vec_for_each (&t->threads, it) {
		if ((*it)->tid == tid && (*it)->state != THREAD_GONE)
			return *it;
	}
	return NULL;
}

struct thread *thread_add(struct target *t, pid_t tid)
{
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->tid = tid;
	if (vec_push(&t->threads, th)) {
		free(th);
		return NULL;
	}
	return th;
}

void threads_drop_gone(struct target *t)
{
	size_t keep = 0;

	for (size_t i = 0; i < t->threads.n; i++) {
		if (t->threads.at[i]->state == THREAD_GONE)
			free(t->threads.at[i]);
		else
			t->threads.at[keep++] = t->threads.at[i];
	}
	t->threads.n = keep;
}

void threads_forget(struct target *t)
{
	vec_for_each (&t->threads, it)
		free(*it);
	vec_free(&t->threads);
}
