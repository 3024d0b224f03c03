/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An allocator that switches coroutines: at SIGUSR1 a coroutine calls malloc(), which switches back
 * to the main stack before it returns.  At SIGUSR2 this malloc() returns.  The main stack allocates
 * in a loop.  Prints "parked" and "returned", and "ok" when SIGTERM ends it.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (256u << 10)

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

static volatile sig_atomic_t park, resume, stop;
static ucontext_t main_stack, coroutine;
static volatile unsigned long calls;
static bool switches;

static void on_signal(int sig)
{
	*(sig == SIGUSR1 ? &park : sig == SIGUSR2 ? &resume : &stop) = 1;
}

__attribute__((noinline)) void *malloc(size_t size)
{
	void *block;

	calls++; /* makes room for a hook before the first call */
	block = __libc_malloc(size);
	if (switches) {
		switches = false;
		swapcontext(&coroutine, &main_stack);
	}
	return block;
}

__attribute__((noinline)) void free(void *block)
{
	calls++;
	__libc_free(block);
}

/* Calls that the compiler can neither inline nor leave out. */
static void *(*volatile allocate)(size_t) = malloc;

static void body(void)
{
	char *block;

	switches = true;
	block = allocate(100);
	*block = 1;
	free(block);
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		return 3;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGTERM, on_signal);
	while (!stop) {
		free(allocate(50));
		usleep(100);
		if (park) {
			park = 0;
			getcontext(&coroutine);
			coroutine.uc_stack.ss_sp = stack;
			coroutine.uc_stack.ss_size = STACK;
			coroutine.uc_link = &main_stack;
			makecontext(&coroutine, body, 0);
			swapcontext(&main_stack, &coroutine);
			say("parked");
		}
		if (resume) {
			resume = 0;
			swapcontext(&main_stack, &coroutine);
			say("returned");
		}
	}
	say("ok");
	return 0;
}
