/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program whose malloc is a restartable sequence from its first instruction on: it takes the next
 * bytes of a pool.  With -DELSEWHERE the sequence is in another function, to which malloc jumps.
 * Prints "ok" at SIGTERM if no two blocks overlapped.
 */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__

#include <sys/rseq.h>

char pool[1 << 24] __attribute__((aligned(64)));
uint64_t pool_used = sizeof(uint64_t);

/* glibc has registered the thread's rseq area. */
__asm__(".pushsection __rseq_cs, \"aw\"\n"
	".balign 32\n"
	"sequence:\n"
	".long 0, 0\n"
	".quad 1f, 2f - 1f, 3f\n"
	".popsection\n"
	".pushsection .text\n"
	".long 0x53053053\n"
	"3:	jmp 1f\n"
#ifdef ELSEWHERE
	".globl malloc\n"
	".type malloc, @function\n"
	"malloc:\n"
	"	mov %rdi, %rdx\n"
	"	add $15, %rdx\n"
	"	and $-16, %rdx\n"
	"	jmp take\n"
	".size malloc, . - malloc\n"
	"take:\n"
	"1:\n"
#else
	".globl malloc\n"
	".type malloc, @function\n"
	"malloc:\n"
	"1:	mov %rdi, %rdx\n"
	"	add $15, %rdx\n"
	"	and $-16, %rdx\n"
#endif
	"	mov pool_used(%rip), %rax\n"
	"	add %rax, %rdx\n"
	"	mov %rdx, pool_used(%rip)\n" /* the commit */
	"2:	lea pool(%rip), %rdx\n"
	"	add %rdx, %rax\n"
	"	ret\n"
#ifndef ELSEWHERE
	".size malloc, . - malloc\n"
#endif
	".popsection\n");

extern char sequence[];

void free(void *p)
{
	for (int i = 0; p && i < 8; i++)
		((volatile char *)p)[i] = (char)i;
}

void *calloc(size_t n, size_t size)
{
	volatile char *p = malloc(n * size);

	for (size_t i = 0; i < n * size; i++)
		p[i] = 0;
	return (void *)p;
}

void *realloc(void *p, size_t size)
{
	char *q = malloc(size);

	for (size_t i = 0; p && i < size; i++)
		q[i] = ((volatile char *)p)[i];
	free(p);
	return q;
}

static void *allocate(size_t size)
{
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	*(volatile uint64_t *)(area + offsetof(struct rseq, rseq_cs)) = (uintptr_t)sequence;
	return malloc(size);
}

static volatile sig_atomic_t ended;

static void end(int sig)
{
	ended = sig;
}

int main(void)
{
	uint64_t start = pool_used;

	signal(SIGTERM, end);
	alarm(600); /* end even if the test has died */
	while (!ended) {
		char *p = allocate(100), *q = allocate(200);

		if (q - p != 112)
			return 1;
		free(p);
		free(q);
		if (pool_used > sizeof(pool) / 2)
			pool_used = start;
		usleep(100);
	}
	puts("ok");
	return 0;
}

#else

int main(void)
{
	return 1; /* the sequence exists for x86-64 only */
}

#endif
