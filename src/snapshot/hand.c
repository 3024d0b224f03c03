/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/hand.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t hand = PTHREAD_MUTEX_INITIALIZER;
static bool wanted;
static void (*undo_now)(void *arg);
static void *undo_arg;

void hand_take(void)
{
	pthread_mutex_lock(&hand);
}

void hand_leave(void (*undo)(void *arg), void *arg)
{
	undo_now = undo;
	undo_arg = arg;
	pthread_mutex_unlock(&hand);
	while (hand_wanted())
		pause();
}

bool hand_wanted(void)
{
	return __atomic_load_n(&wanted, __ATOMIC_RELAXED);
}

void hand_end(void)
{
	__atomic_store_n(&wanted, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&hand);
	if (undo_now)
		undo_now(undo_arg);
}
