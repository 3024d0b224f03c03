/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs that memprof cannot hook, or cannot detach from at once.  Compile-time options:
 *
 *	-DCROWDED	all address space around libc is in use
 *	-DTWISTED	its own malloc branches into its first bytes
 *	-DSLOW		its own malloc waits for a byte on stdin, once after SIGUSR1
 *	-DAWAY		the same, but it waits in a signal handler on an alternate stack
 *
 * Prints "ok" and ends at SIGTERM.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

#ifdef AWAY
#define SLOW
#endif

#if defined(TWISTED) || defined(SLOW)
static char heap[64 << 20];
static size_t used;

static void *take(size_t n)
{
	size_t at = __atomic_fetch_add(&used, (n + 31) & ~15ull, __ATOMIC_RELAXED);

	return at + n < sizeof(heap) ? heap + at : NULL;
}

__attribute__((noinline)) void free(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	__asm__ volatile(".fill 16, 1, 0x90");
}

void *calloc(size_t n, size_t size)
{
	return take(n * size);
}

void *realloc(void *p, size_t n)
{
	void *q = take(n);

	if (p && q)
		memmove(q, p, n);
	return q;
}
#endif

#ifdef TWISTED
void *take_it(size_t n);
void *take_it(size_t n)
{
	return take(n);
}
/* Its loop jumps back to its third byte. */
__asm__(".globl malloc\n.type malloc,@function\nmalloc:\n"
	"	xor %eax,%eax\n"
	"1:	inc %eax\n"
	"	nop\n	nop\n	nop\n"
	"	cmp $2,%eax\n"
	"	jb 1b\n"
	"	jmp take_it\n"
	".size malloc,.-malloc\n");
#elif defined(SLOW)
static volatile sig_atomic_t slowly;

static void on_usr1(int sig)
{
	(void)sig;
	slowly = 1;
}

static void wait_for_byte(void)
{
	char c;

	while (slowly && read(0, &c, 1) != 1)
		;
	slowly = 0;
}

#ifdef AWAY
static void on_usr2(int sig)
{
	(void)sig;
	wait_for_byte();
}

static void begin_slow(void)
{
	static char stack[64 << 10];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction sa = {.sa_handler = on_usr2, .sa_flags = SA_ONSTACK};

	sigaltstack(&ss, NULL);
	sigaction(SIGUSR2, &sa, NULL);
}

static void be_slow(void)
{
	if (slowly)
		raise(SIGUSR2);
}
#else
#define begin_slow() (void)0
#define be_slow	     wait_for_byte
#endif

__attribute__((noinline)) void *malloc(size_t n)
{
	be_slow();
	return take(n);
}
#endif

#ifdef CROWDED
/* Fills every hole within 3 GiB of libc; within 64 MiB also the small ones between mappings. */
static void crowd(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	uint64_t libc = (uint64_t)(uintptr_t)signal & ~0xfffull;

	for (uint64_t size = 1ull << 30; size >= 4096; size /= 2) {
		uint64_t far = size >= 1 << 20 ? 3ull << 30 : 64ull << 20;

		for (uint64_t p = (libc - far) & ~(size - 1); p < libc + far; p += size)
			(void)!mmap((void *)(uintptr_t)p, size, PROT_NONE, flags, -1, 0);
	}
}
#endif

int main(void)
{
	signal(SIGTERM, on_term);
#ifdef SLOW
	signal(SIGUSR1, on_usr1);
	begin_slow();
#endif
	alarm(300);
#ifdef CROWDED
	free(malloc(1 << 20));
	crowd();
#endif
	dprintf(1, "ready\n");
	while (!stop) {
		free(malloc(100));
		usleep(1000);
	}
	dprintf(1, "ok\n");
	return 0;
}
