/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads wait in the kernel.  Each has a block whose address is only in a register.
 *
 *	held THREADS
 */
#include <pthread.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define SAVED "rbx"
#elif defined(__aarch64__)
#define SAVED "x19"
#elif defined(__arm__)
#define SAVED "r4"
#elif defined(__mips__)
#define SAVED "$16"
#endif

#define SIZE 7777

static pthread_barrier_t all;

/* Overwrites copies of the address that malloc() left below the stack pointer. */
static void __attribute__((noinline)) scrub(void)
{
	char below[16384];

	memset(below, 0, sizeof(below));
	__asm__ volatile("" : : "r"(below) : "memory");
}

static void *hold(void *arg)
{
	register char *block __asm__(SAVED) = malloc(SIZE);

	pthread_barrier_wait(&all);
	scrub();
	__asm__ volatile("" : "+r"(block));
	syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	__asm__ volatile("" : "+r"(block));
	free(block);
	return arg;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t id;

	pthread_barrier_init(&all, NULL, (unsigned int)threads + 1);
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&id, NULL, hold, NULL))
			return 1;
	}
	pthread_barrier_wait(&all);
	sleep(1);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
