/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/tasks.h"

#include <stdlib.h>

struct model_thread *tasks_at(struct tasks *t, uint32_t tid, uint32_t i)
{
	struct model_thread fresh = {.tid = tid};

	if (i == TIDS_NONE || (i == t->threads.n && vec_push(&t->threads, fresh)))
		return NULL;
	return &t->threads.at[i];
}

void tasks_free(struct tasks *t)
{
	vec_for_each (&t->threads, thread)
		free(thread->name);
	vec_for_each (&t->processes, p) {
		free((char *)p->of.executable);
		free((char *)p->of.cmdline);
	}
	vec_free(&t->threads);
	vec_free(&t->processes);
	tids_free(&t->tids);
}
