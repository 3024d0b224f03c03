/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The CPU time that a piece of work takes, when a process does several at once: that of the thread that begins the account, and
 * of all threads that it and they start (lib/thread.h).
 */
#ifndef LIB_CPU_ACCOUNT_H
#define LIB_CPU_ACCOUNT_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* A thread in an account.  It is on the thread's stack. */
struct cpu_member {
	clockid_t clock;
	struct cpu_member *next, **at; /* in the list */
};

struct cpu_account {
	pthread_mutex_t lock; /* protects what follows */
	struct cpu_member *running;
	uint64_t ended_ns; /* of threads that have ended */
	struct cpu_member first;
};

/* Begins an account, to which the calling thread belongs. */
void cpu_account_begin(struct cpu_account *a);
/* Ends it.  To be called by the same thread, when all others of the account have ended. */
void cpu_account_end(struct cpu_account *a);
/* Return: the CPU time of the calling thread's account, in nanoseconds; that of the process if it belongs to none. */
uint64_t cpu_account_read(void);

/* For lib/thread.c. */

/* Return: the account of the calling thread, or NULL. */
struct cpu_account *cpu_account_mine(void);
void cpu_account_enter(struct cpu_account *a, struct cpu_member *m);
void cpu_account_leave(struct cpu_account *a, struct cpu_member *m);

#endif
