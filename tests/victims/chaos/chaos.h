/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that does everything at once and checks each result against what must be true however
 * often it is stopped (main.c says how it is run).  What it does is done by actors.  An actor has a
 * thread, which makes one round after the other; a round takes at most some tenths of a second,
 * begins with nothing and leaves nothing, so that the main thread can make rounds of its own.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct actor {
	const char *name;
	void (*round)(struct actor *a);
	const char *guaranteed; /* what every round checks */
	const char *but;	/* where that does not hold, or NULL */
	bool cut_off;		/* its calls may fail by EINTR when memprof is killed */
	bool alone;		/* uses what a process has one of: no rounds in the main thread */
	bool same_thread;	/* as the row before */

	atomic_ulong rounds, wrong, cut;
	_Atomic int64_t last_ns, gap_ns; /* end of the latest round; longest time between two */
	const char *skipped;		 /* why it does nothing here */
	pthread_t thread;		 /* if it was begun */
	bool begun;
};

/* Each ends with a row without a name. */
extern struct actor sleeps[], wakeups[], streams[], signals[], timers[], family[], memory[],
    locks[], processor[], state[];

/* Before threads are made; dispositions of signals do not change any more then. */
void sleeps_prepare(void);
void streams_prepare(void);
void signals_prepare(void);
void timers_prepare(void);
void family_prepare(const char *program);
void state_prepare(void);
/* Of the thread that has all children. */
void snapshot_round(struct actor *a);
/* When all other threads have ended: the process has what it began with. */
void state_at_end(struct actor *a);

/* Counts a violation, and prints it, unless @ok.  Return: @ok. */
bool must(struct actor *a, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A call that returned @ret (and errno) had to return @want, with @error if that is -1, and not
 * before @ms milliseconds after @since. */
void came_out(struct actor *a, const char *call, long ret, long want, int error, int64_t since,
	      int ms);
/* @ret and errno are those of a call of an actor with cut_off that a kill of memprof has ended. */
bool was_cut_off(struct actor *a, long ret);
/* Whether a debugger may be killed at its work, and leave what it did half done. */
extern bool killed;
/* Whether waits may see what is not a child of the program's. */
extern bool plain_waits_only;
/* The actor does nothing here. */
void skip(struct actor *a, const char *why);

int64_t now_ns(void);
struct timespec in_ms(clockid_t clock, int ms);
struct timespec of_ms(int ms);
/* Sleeps for up to so long. */
void pause_us(unsigned us);
/* A thread with all signals blocked. */
pthread_t begin(void *(*run)(void *), void *arg);
/* Ends the program: what the test needs is not there. */
_Noreturn void give_up(const char *what);
void block(int signal);
void unblock(int signal);
/* Of @signal, for the process. */
void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags);

#endif
