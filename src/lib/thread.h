/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LIB_THREAD_H
#define LIB_THREAD_H

#include <pthread.h>

/**
 * thread_start() - start a thread that handles no signals
 * @thread: set to the thread, for pthread_join()
 * @run: its function, called with @arg
 * The thread blocks all signals, so that the kernel gives them to the thread that expects them.  It belongs to the CPU account
 * (lib/cpu_account.h) of the thread that starts it.
 * Return: 0, -ENOMEM, or a negative errno as from pthread_create(3).
 */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
