/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/thread_numbers.h"

#include <errno.h>

#define TIDS_LOAD 60

int thread_numbers_init(struct thread_numbers *t)
{
	t->of_tid = live_new(TIDS_LOAD);
	return t->of_tid ? 0 : -ENOMEM;
}

void thread_numbers_free(struct thread_numbers *t)
{
	live_free(t->of_tid);
}

/* The address 0 is not in a table of live blocks, but the thread 0, which is not known, has a number. */
static uint64_t key_of(uint32_t tid)
{
	return ((uint64_t)tid + 1) << 4;
}

int thread_number_find(struct thread_numbers *t, uint32_t tid, uint32_t *number)
{
	struct live_block fresh = {.addr = key_of(tid), .stack = t->n}, found;

	if (!live_find(t->of_tid, fresh.addr, &found)) {
		if (live_put(t->of_tid, &fresh, &found))
			return -ENOMEM;
		found.stack = t->n++;
	}
	t->last_tid = tid;
	*number = t->last_number = found.stack;
	return 0;
}
