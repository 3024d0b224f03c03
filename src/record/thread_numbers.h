/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers threads, so that what is known of each can be in an array. */
#ifndef RECORD_THREAD_NUMBERS_H
#define RECORD_THREAD_NUMBERS_H

#include <stdint.h>
#include "lib/live.h"

struct thread_numbers {
	struct live *of_tid;
	uint32_t n;			/* threads that have a number: 0 to n - 1 */
	uint32_t last_tid, last_number; /* of the latest thread_number() */
};

/* Fills the zeroed @t.  Return: 0 or -ENOMEM; thread_numbers_free() in both cases. */
int thread_numbers_init(struct thread_numbers *t);
void thread_numbers_free(struct thread_numbers *t);
/* thread_number() for another thread than the last time. */
int thread_number_find(struct thread_numbers *t, uint32_t tid, uint32_t *number);

/* Sets @number to that of the thread @tid, which gets the next one if it has none.  Return: 0 or
 * -ENOMEM. */
static inline int thread_number(struct thread_numbers *t, uint32_t tid, uint32_t *number)
{
	if (!t->n || tid != t->last_tid)
		return thread_number_find(t, tid, number);
	*number = t->last_number;
	return 0;
}

#endif
