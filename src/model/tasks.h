/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads of a recording and, if it is a merged one, its processes.  model/facts.c adds them
 * and their names, model/sums/totals.c their sums. */
#ifndef MODEL_TASKS_H
#define MODEL_TASKS_H

#include <stdint.h>
#include "formats/file.h"
#include "lib/vec.h"
#include "model/tids.h"

struct model_thread {
	uint32_t tid;
	char *name;
	uint64_t allocations, allocated_bytes, temporary, live_bytes, live_blocks;
	uint64_t frees; /* frees made by the thread, no matter who allocated the blocks */
};

/* A process of a merged recording, with the sums of its blocks. */
struct model_process {
	struct mp_process of; /* strings owned */
	uint64_t allocations, allocated_bytes, frees, live_bytes, live_blocks;
};

struct tasks {
	VEC(struct model_thread) threads;
	struct tid_table tids;		     /* index in threads */
	VEC(struct model_process) processes; /* of a merged recording, by number */
};

/* Return: the thread with index @i of tids_index(), added if it is new, or NULL when out of memory. */
struct model_thread *tasks_at(struct tasks *t, uint32_t tid, uint32_t i);
/* Return: the thread, added if it is new, or NULL when out of memory; valid until the next call. */
static inline struct model_thread *tasks_thread(struct tasks *t, uint32_t tid)
{
	uint32_t i = tids_index(&t->tids, tid);

	return i < t->threads.n ? &t->threads.at[i] : tasks_at(t, tid, i);
}
void tasks_free(struct tasks *t);

#endif
