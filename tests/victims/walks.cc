// SPDX-License-Identifier: MIT OR Apache-2.0
// Makes stacks that look alike but differ: walks SECONDS.  Repeats all patterns that make a cached
// walk wrong if the agent does not compare enough of it.
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdexcept>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static volatile unsigned long pairs, sink;
static __thread unsigned int x = 1;

static unsigned int rnd()
{
	x = x * 1664525 + 1013904223;
	return x >> 8;
}

__attribute__((noinline)) static void pair()
{
	void *volatile p = malloc(16 + rnd() % 200);

	free(p);
	pairs = pairs + 1;
}

// Frames with alloca have their CFA in rbp.  The sizes are chosen so that the return addresses of
// one walk are where those of another one were, with other frames between them.
__attribute__((noinline)) static void flexible(unsigned int size, int depth)
{
	volatile char *p = (volatile char *)alloca(size);

	p[0] = (char)size;
	if (depth)
		flexible(rnd() & 1 ? size : size + 16 * (rnd() % 5), depth - 1);
	else
		pair();
	sink = sink + (unsigned char)p[0];
}

__attribute__((noinline)) static void fixed(int depth)
{
	volatile char room[48];

	room[0] = (char)depth;
	if (depth > 0)
		fixed(depth - 1 - (int)(rnd() & 1));
	else
		pair();
	sink = sink + (unsigned char)room[0];
}

// All return addresses of the cached walk are where they were, but the caller's frame is at another
// address, which only rbp shows.
__attribute__((noinline)) static void leaf_of_alloca(unsigned int size)
{
	volatile char *p = (volatile char *)alloca(size);

	memset((void *)p, 0, size);
	pair();
	sink = sink + (unsigned char)p[0];
}

__attribute__((noinline)) static void stale(int which)
{
	volatile uintptr_t room[64];

	// Leave copies of this frame's words in the unused part of the stack.
	for (int i = 0; i < 64; i++)
		room[i] = ((uintptr_t *)__builtin_frame_address(0))[i % 8];
	leaf_of_alloca(which & 1 ? 64 : 256 + 16 * (unsigned int)(which % 7));
	sink = sink + room[3];
}

__attribute__((noinline)) static void thrower(int depth)
{
	if (depth == 0) {
		pair();
		throw std::runtime_error("up");
	}
	thrower(depth - 1);
	pair();
}

__attribute__((noinline)) static void catches()
{
	try {
		thrower((int)(rnd() % 9));
	} catch (const std::exception &) {
		pair();
	}
}

static __thread jmp_buf away;

__attribute__((noinline)) static void jumps(int depth)
{
	pair();
	if (depth > 0)
		jumps(depth - 1);
	else if (pairs)
		longjmp(away, 1);
	pair();
}

__attribute__((noinline)) static void lands()
{
	if (!setjmp(away))
		jumps((int)(rnd() % 12));
	pair();
}

// Fibers: one function at one depth on several stacks; a stack is reused by other fibers.
static __thread ucontext_t home, fiber[4];
static __thread char *stack[4];

static void on_fiber(int n)
{
	for (;;) {
		fixed(n + (int)(rnd() % 3));
		flexible(32, (int)(rnd() % 3));
		swapcontext(&fiber[n], &home);
	}
}

static void fibers()
{
	for (volatile int n = 0; n < 4; n = n + 1) {
		if (!stack[n]) {
			stack[n] = (char *)malloc(65536);
			getcontext(&fiber[n]);
			fiber[n].uc_stack.ss_sp = stack[n];
			fiber[n].uc_stack.ss_size = 65536;
			fiber[n].uc_link = &home;
			makecontext(&fiber[n], (void (*)())on_fiber, 1, n);
		}
		swapcontext(&home, &fiber[n]);
	}
}

static volatile int in_malloc_user;

static void on_signal(int)
{
	// malloc is not async-signal-safe: only allocate if the signal did not interrupt malloc.
	if (in_malloc_user)
		return;
	fixed((int)(rnd() % 4));
	pair();
}

__attribute__((noinline)) static void busy()
{
	for (int i = 0; i < 20000; i++)
		sink = sink + (unsigned int)i;
}

static void *run(void *arg)
{
	double seconds = *(double *)arg;
	struct timespec start, now;
	char alternate[16384];
	stack_t ss = {};

	ss.ss_sp = alternate;
	ss.ss_size = sizeof(alternate);
	sigaltstack(&ss, NULL);
	x = (unsigned int)(uintptr_t)&x;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		__atomic_fetch_add(&in_malloc_user, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 50; i++) {
			flexible(16, (int)(rnd() % 6));
			fixed((int)(rnd() % 20));
			stale((int)rnd());
			lands();
			if (i % 8 == 0)
				catches();
			fibers();
		}
		__atomic_fetch_sub(&in_malloc_user, 1, __ATOMIC_SEQ_CST);
		busy();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
		 seconds);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct itimerval every = {{0, 500}, {0, 500}};
	struct sigaction sa = {};
	pthread_t th;

	sa.sa_handler = on_signal;
	sa.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	run(&seconds);
	pthread_create(&th, NULL, run, &seconds);
	pthread_join(th, NULL);
	printf("{\"pairs\": %lu}\n", pairs);
	return 0;
}
