/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads with alternate signal stacks from malloc(), whose addresses only the kernel has.
 *
 *	signal_stacks THREADS [fiber]	the main thread and THREADS others: in turn, one waits for a futex, one
 *					sleeps, one reads from a pipe, one computes; with "fiber" the latter
 *					does so on a stack of its own, below which is memory for something else
 *
 * Each stack has, where it was never used, the only pointer to another block.  One more block, of 5,000 bytes, is
 * leaked.  Prints "ready" and the address of the main thread's stack ^ MASK.  At a line on standard input one thread ends, and leaves its stack behind; prints "ended".
 * At SIGTERM sends a signal to each thread, whose handler checks that it runs on the thread's signal stack.  Prints
 * "ok" and exits 0, or prints what is wrong and exits 1.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST  64
#define SIZE  16384
#define FIBER 65536
#define MASK  0x5a5a5a5a5a5a5a5aull

struct worker {
	pthread_t thread;
	int how;
	uint64_t hidden; /* address of the signal stack ^ MASK, which is no pointer to it */
	sem_t ready, handled, never;
	int pipe[2];
	char *below; /* FIBER bytes below the stack of its fiber */
	volatile sig_atomic_t good, ends;
};

static struct worker worker[MOST];
static __thread struct worker *self;
static int fibers;

static void on_signal(int sig)
{
	uint64_t at = (uint64_t)(uintptr_t)&sig, low = self->hidden ^ MASK;

	self->good = at >= low && at < low + SIZE;
	sem_post(&self->handled);
}

static void on_end(int sig)
{
	(void)sig;
}

/* Not inlined, so that its frame, which had the address, is overwritten afterwards. */
__attribute__((noinline)) static void make_stack(struct worker *w)
{
	stack_t s = {.ss_size = SIZE, .ss_sp = malloc(SIZE)};

	memset(s.ss_sp, 0, SIZE);
	*(void **)s.ss_sp = malloc(100);
	w->hidden = (uint64_t)(uintptr_t)s.ss_sp ^ MASK;
	if (sigaltstack(&s, NULL))
		_exit(2);
	memset(&s, 0, sizeof(s));
	__asm__ volatile("" : : "r"(&s) : "memory");
}

__attribute__((noinline)) static void overwrite(void)
{
	char clean[16384];

	memset(clean, 0, sizeof(clean));
	__asm__ volatile("" : : "r"(clean) : "memory");
}

static void begin(struct worker *w)
{
	self = w;
	make_stack(w);
	overwrite();
	sem_post(&w->ready);
}

/* Not inlined: the compiler must not keep the address of a worker's variables over swapcontext(). */
__attribute__((noinline)) static void compute(struct worker *w)
{
	for (volatile unsigned long n = 0; !w->ends;)
		n++;
}

static void run_fiber(void)
{
	compute(self);
}

/* The lower half of the fiber's stack is not for the fiber: it must stay as it is. */
static void compute_in_fiber(struct worker *w)
{
	char *both =
	    mmap(NULL, 2 * FIBER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t back, fiber;

	if (both == MAP_FAILED || getcontext(&fiber))
		_exit(2);
	memset(both, 7, FIBER);
	fiber.uc_stack.ss_sp = both + FIBER;
	fiber.uc_stack.ss_size = FIBER;
	fiber.uc_link = &back;
	makecontext(&fiber, run_fiber, 0);
	w->below = both;
	swapcontext(&back, &fiber);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	char c;

	begin(w);
	while (!w->ends) {
		switch (w->how % 4) {
		case 0:
			sem_wait(&w->never);
			break;
		case 1:
			sleep(1000);
			break;
		case 2:
			if (read(w->pipe[0], &c, 1) > 0)
				w->ends = 1;
			break;
		default:
			if (fibers)
				compute_in_fiber(w);
			else
				compute(w);
		}
	}
	return NULL;
}

__attribute__((noinline)) static void leak(void)
{
	char *p = malloc(5000);

	memset(p, 1, 5000);
	__asm__ volatile("" : : "r"(p) : "memory");
}

static int check(struct worker *w, pthread_t thread)
{
	if (w->ends)
		return 0;
	pthread_kill(thread, SIGUSR1);
	while (sem_wait(&w->handled))
		;
	if (!w->good)
		printf("thread %d: the handler ran on another stack\n", (int)(w - worker));
	for (size_t i = 0; w->below && i < FIBER; i++) {
		if (w->below[i] != 7) {
			printf("thread %d: byte %zu below the fiber's stack was written to\n",
			       (int)(w - worker), i);
			return 1;
		}
	}
	return !w->good;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 0;
	struct sigaction on = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct sigaction end = {.sa_handler = on_end};
	int bad = 0, c;

	if (n < 3 || n >= MOST)
		return 2;
	fibers = argc > 2;
	sigaction(SIGUSR1, &on, NULL);
	sigaction(SIGTERM, &end, NULL);
	for (int i = 0; i <= n; i++) {
		struct worker *w = &worker[i];

		w->how = i;
		sem_init(&w->ready, 0, 0);
		sem_init(&w->handled, 0, 0);
		sem_init(&w->never, 0, 0);
		if (pipe(w->pipe) || (i && pthread_create(&w->thread, NULL, work, w)))
			return 2;
		if (!i)
			begin(w);
		while (sem_wait(&w->ready))
			;
	}
	leak();
	overwrite();
	printf("ready %llx\n", (unsigned long long)worker[0].hidden);
	fflush(stdout);
	while ((c = getchar()) != EOF) {
		if (c != '\n')
			continue;
		if (write(worker[2].pipe[1], "x", 1) != 1 || pthread_join(worker[2].thread, NULL))
			return 2;
		puts("ended");
		fflush(stdout);
	}
	for (int i = 0; i <= n; i++)
		bad |= check(&worker[i], i ? worker[i].thread : pthread_self());
	if (!bad)
		puts("ok");
	return bad;
}
