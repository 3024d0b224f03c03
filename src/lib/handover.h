/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread that works on the slots of a small ring, in order, which its owner fills. */
#ifndef LIB_HANDOVER_H
#define LIB_HANDOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: no thread was started.  Must stay where it is while the thread runs. */
struct handover {
	void (*work)(void *arg, unsigned int slot);
	void *arg;
	unsigned int slots;
	pthread_t thread;
	pthread_mutex_t lock;	/* of the members below */
	pthread_cond_t changed; /* only one of the two threads waits at a time */
	uint64_t given, done;	/* slots, counted since the start */
	bool started, over;
};

/**
 * handover_start() - start the thread
 * @slots: of the ring, from 1 on
 * @work: called in the thread with @arg for each given slot, in order
 *
 * The thread handles no signals and keeps no capabilities.  The owner's calls can come from several
 * threads, but only one at a time.
 *
 * Return: 0, or a negative errno, @h then zeroed.
 */
int handover_start(struct handover *h, unsigned int slots,
		   void (*work)(void *arg, unsigned int slot), void *arg);
/* Waits until the next slot is free: its work is done.  Return: the slot. */
unsigned int handover_slot(struct handover *h);
/* Gives the slot that handover_slot() returned last to the thread. */
void handover_give(struct handover *h);
/* Waits until the work on all given slots but the last @left is done. */
void handover_wait_but(struct handover *h, unsigned int left);
/* Waits until the work on all given slots is done. */
void handover_wait(struct handover *h);
/* As handover_wait(), and ends the thread and zeroes @h.  Does nothing if it was not started. */
void handover_stop(struct handover *h);

#endif
