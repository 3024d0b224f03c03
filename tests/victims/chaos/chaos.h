/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that uses many kernel interfaces at once and checks each result against what must be
 * true however often the program is stopped (main.c describes its usage).  Each kind of work is an
 * actor.  An actor has a thread that makes one round after the other.  A round takes at most some
 * tenths of a second, needs no state of earlier rounds and leaves none, so that the main thread can
 * make rounds, too.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "inject/family.h"

struct actor {
	const char *name;
	void (*round)(struct actor *a);
	const char *guaranteed; /* what every round checks */
	const char *but;	/* exceptions to it, or NULL */
	bool cut_off;		/* its calls may fail with EINTR when memprof is killed */
	bool alone;		/* uses a per-process resource: no rounds in the main thread */
	bool same_thread;	/* runs in the thread of the row before */

	atomic_ulong rounds, wrong, cut;
	_Atomic int64_t last_ns, gap_ns; /* end of the latest round; longest time between two */
	const char *skipped;		 /* why it cannot run here, or NULL */
	pthread_t thread;		 /* valid if begun */
	bool begun;
};

/* Each array ends with a row without a name. */
extern struct actor sleeps[], wakeups[], streams[], signals[], timers[], family[], memory[],
    locks[], processor[], state[];

/* To be called before threads are made: afterwards the dispositions of signals do not change. */
void sleeps_prepare(void);
void streams_prepare(void);
void signals_prepare(void);
void timers_prepare(void);
void family_prepare(const char *program);
void state_prepare(void);
/* To be called by the actor that makes all children, in its thread. */
void snapshot_round(struct actor *a);
/* Checks, after all other threads have ended, that the process has only what it began with. */
void state_at_end(struct actor *a);

/* Counts and prints a violation if @ok is false.  Return: @ok. */
bool must(struct actor *a, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Checks the result of a call: @ret must be equal to @want, errno to @error if @want is -1, and at
 * least @ms milliseconds must have passed since the time @since. */
void came_out(struct actor *a, const char *call, long ret, long want, int error, int64_t since,
	      int ms);
/* Return: whether @ret and errno are the result of a call that the kill of memprof has ended, by an
 * actor that permits this (cut_off). */
bool was_cut_off(struct actor *a, long ret);
/* --killed: memprof can be killed while it works, and leave its changes incomplete. */
extern bool killed;
/* --gentle: use no wait that can see processes other than the program's own children. */
extern bool plain_waits_only;
/* Marks the actor as one that cannot run here. */
void skip(struct actor *a, const char *why);

int64_t now_ns(void);
struct timespec in_ms(clockid_t clock, int ms);
struct timespec of_ms(int ms);
/* Sleeps for a random time of less than @us microseconds. */
void pause_us(unsigned us);
/* Makes a thread that inherits the caller's signal mask, in which all signals are blocked. */
pthread_t begin(void *(*run)(void *), void *arg);
/* Ends the program because something that the test needs has failed. */
_Noreturn void give_up(const char *what);
void block(int signal);
void unblock(int signal);
/* Sets the handler of @signal for the process. */
void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags);

#endif
