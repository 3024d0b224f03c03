/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 *	chaos [--killed] [--gentle] [ACTOR...]	runs all actors, or these, until SIGTERM
 *	chaos --list				prints what each guarantees
 *
 * Prints "ready" when each actor has made a round, and each violation when it happens.  At the end
 * prints a line for each actor, and "violations N".  The exit status is 0 if there was no
 * violation, else 1.
 * --killed: memprof can be killed while it holds the threads; permitted effects of this are not
 * violations.  --gentle: no wait() with __WALL or __WCLONE.
 *
 * All threads block all signals except those they wait for, so that no handler interrupts a call of
 * another actor.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "chaos.h"
#include "inject/family.h"

/* Error that a recvmmsg() ended by a signal leaves for the next call (the kernel's do_recvmmsg()).
 */
#define ERESTARTSYS 512
#define STANDS_NS   (60 * 1000000000ll) /* an actor without a round for so long hangs */
#define SAID	    20			/* violations printed for each actor, at most */

static struct actor *const casts[] = {sleeps, wakeups, streams, signals,   timers,
				      family, memory,  locks,	processor, state};
#define CASTS (sizeof(casts) / sizeof(casts[0]))
static char **chosen;
bool killed;
static atomic_bool over, all_ended;

#define for_each_actor(a)                                                                          \
	for (size_t cast_ = 0; cast_ < CASTS; cast_++)                                             \
		for (struct actor *a = casts[cast_]; a->name; a++)

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

struct timespec of_ms(int ms)
{
	return (struct timespec){ms / 1000, ms % 1000 * 1000000l};
}

struct timespec in_ms(clockid_t clock, int ms)
{
	struct timespec t;
	long ns;

	clock_gettime(clock, &t);
	ns = t.tv_nsec + ms % 1000 * 1000000l;
	return (struct timespec){t.tv_sec + ms / 1000 + ns / 1000000000, ns % 1000000000};
}

void pause_us(unsigned us)
{
	static _Thread_local uint32_t x = 1;
	struct timespec t;

	x = x * 1103515245 + 12345;
	t = (struct timespec){0, (long)(x >> 8) % us * 1000};
	nanosleep(&t, NULL);
}

_Noreturn void give_up(const char *what)
{
	fprintf(stderr, "chaos: %s: %s\n", what, strerror(errno));
	_exit(3);
}

pthread_t begin(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t th;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	error = pthread_create(&th, &attr, run, arg);
	pthread_attr_destroy(&attr);
	if (error) {
		errno = error;
		give_up("pthread_create");
	}
	return th;
}

static void mask_one(int how, int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	pthread_sigmask(how, &set, NULL);
}

void block(int signal)
{
	mask_one(SIG_BLOCK, signal);
}

void unblock(int signal)
{
	mask_one(SIG_UNBLOCK, signal);
}

void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	sigfillset(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIGSEGV);
	if (sigaction(signal, &sa, NULL))
		give_up("sigaction");
}

bool must(struct actor *a, bool ok, const char *format, ...)
{
	char text[256];
	va_list args;

	if (ok || a->wrong++ >= SAID)
		return ok;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(1, "%s: %s\n", a->name, text);
	return false;
}

bool was_cut_off(struct actor *a, long ret)
{
	if (ret != -1 || (errno != EINTR && errno != ERESTARTSYS) || !killed || !a->cut_off)
		return false;
	a->cut++;
	return true;
}

void came_out(struct actor *a, const char *call, long ret, long want, int error, int64_t since,
	      int ms)
{
	int64_t took = now_ns() - since;
	int got = errno;

	if (was_cut_off(a, ret))
		return;
	must(a, ret == want && (ret != -1 || got == error),
	     "%s: expected %ld (%s), got %ld (%s) after %.3f ms", call, want,
	     want == -1 ? strerror(error) : "", ret, ret == -1 ? strerror(got) : "", 1e-6 * took);
	must(a, took >= ms * 1000000ll, "%s: expected at least %d ms, took %.3f", call, ms,
	     1e-6 * took);
}

void skip(struct actor *a, const char *why)
{
	a->skipped = why;
}

static void play(struct actor *a)
{
	int64_t now;

	if (a->skipped)
		return;
	a->round(a);
	a->rounds++;
	now = now_ns();
	if (now - a->last_ns > a->gap_ns)
		a->gap_ns = now - a->last_ns;
	a->last_ns = now;
}

/* Return: whether this row has its own thread, and an actor of the thread can run. */
static bool has_work(const struct actor *first)
{
	bool works = false;

	for (const struct actor *a = first; a->name && (a == first || a->same_thread); a++)
		works |= !a->skipped;
	return works && !first->same_thread;
}

/* Makes a last round of each actor after @over is set, which shows that the actor still works. */
static void *one_actor(void *arg)
{
	struct actor *first = arg;
	bool last;

	do {
		last = over;
		for (struct actor *a = first; a->name && (a == first || a->same_thread); a++)
			play(a);
	} while (!last && has_work(first));
	return NULL;
}

/* Makes rounds of all actors in the main thread, which memprof uses as carrier. */
static void main_thread(void)
{
	while (!over) {
		bool some = false;

		for_each_actor(a)
		{
			if (!a->alone && !a->skipped && !over) {
				play(a);
				some = true;
			}
		}
		if (!some)
			pause_us(50000);
	}
}

static bool is_chosen(const struct actor *a)
{
	bool some = false;

	for (char **name = chosen; *name; name++) {
		if (!strcmp(*name, a->name))
			return true;
		some = true;
	}
	return !some;
}

/* Sets @over at SIGTERM.  Reports actors that hang, and ends the program if one does not return. */
static void *watch(void *arg)
{
	struct timespec second = of_ms(500);
	int64_t end_ns = INT64_MAX;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (!all_ended) {
		if (sigtimedwait(&set, NULL, over ? &(struct timespec){0, 20000000} : &second) ==
		    SIGTERM) {
			over = true;
			end_ns = now_ns() + STANDS_NS;
		}
		for_each_actor(a)
		{
			if (!over && !a->skipped && now_ns() - a->last_ns > STANDS_NS) {
				must(a, false, "expected a round, none ended for %d s",
				     (int)(STANDS_NS / 1000000000));
				a->last_ns = now_ns();
			}
		}
		if (now_ns() > end_ns) {
			for_each_actor(a) dprintf(1, "%s: %lu rounds, last %.1f s ago\n", a->name,
						  a->rounds, 1e-9 * (now_ns() - a->last_ns));
			dprintf(1, "chaos: expected its end, some actor does not return\n");
			_exit(1);
		}
	}
	return arg;
}

static int summary(void)
{
	unsigned long wrong = 0;

	for_each_actor(a)
	{
		wrong += a->wrong;
		if (a->skipped)
			printf("%-16s skipped: %s\n", a->name, a->skipped);
		else
			printf("%-16s %6lu rounds, longest %.0f ms, %lu wrong, %lu cut off\n",
			       a->name, a->rounds, 1e-6 * a->gap_ns, a->wrong, a->cut);
	}
	printf("violations %lu\n", wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	struct actor *at_end = NULL;
	pthread_t watcher;
	sigset_t all;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "--exit"))
		return atoi(argv[2]); /* the program that the exec actor executes */
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for_each_actor(a)
		    printf("| %s | %s | %s |\n", a->name, a->guaranteed, a->but ? a->but : "");
		return 0;
	}
	for (chosen = argv + 1; *chosen && **chosen == '-'; chosen++) {
		killed |= !strcmp(*chosen, "--killed");
		plain_waits_only |= killed || !strcmp(*chosen, "--gentle");
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sleeps_prepare();
	streams_prepare();
	signals_prepare();
	timers_prepare();
	family_prepare(argv[0]);
	state_prepare();
	for_each_actor(a)
	{
		a->last_ns = now_ns();
		if (!is_chosen(a))
			a->skipped = "not asked for";
	}
	watcher = begin(watch, NULL);
	for_each_actor(a)
	{
		a->begun = has_work(a);
		if (a->begun)
			a->thread = begin(one_actor, a);
		at_end = a; /* the last actor, of state.c */
	}
	/* A first round can change the process: pthread_cancel() loads libgcc_s and sets a handler. */
	for_each_actor(a)
	{
		while (!a->skipped && !a->rounds)
			pause_us(1000);
	}
	puts("ready");
	main_thread();
	for_each_actor(a)
	{
		if (a->begun)
			pthread_join(a->thread, NULL);
	}
	all_ended = true;
	pthread_join(watcher, NULL);
	state_at_end(at_end);
	return summary();
}
