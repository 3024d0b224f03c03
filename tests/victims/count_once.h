/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A restartable sequence (x86-64); uses the rseq area that the C library has registered. */
#ifndef VICTIMS_COUNT_ONCE_H
#define VICTIMS_COUNT_ONCE_H

#if defined(__x86_64__)
#include <sys/rseq.h>

/* Increments this CPU's counter: reads it, computes for a while, writes it.  Return: 1, or 0 if the
 * sequence was aborted. */
static int count_once(struct rseq *rs, long (*counter)[8])
{
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n.balign 32\n"
		     "3: .long 0, 0\n.quad 1f, 2f - 1f, 4f\n.popsection\n"
		     "lea 3b(%%rip), %%rax\n"
		     "mov %%rax, %[cs]\n"
		     "1: mov %[cpu], %%eax\n"
		     "shl $6, %%rax\n"
		     "add %[counter], %%rax\n"
		     "mov (%%rax), %%rdx\n"
		     "mov $300, %%ecx\n"
		     "5: dec %%ecx\njnz 5b\n"
		     "inc %%rdx\n"
		     "mov %%rdx, (%%rax)\n"
		     "2:\n"
		     ".pushsection .text.rseq, \"ax\"\n.byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
		     "4: jmp %l[aborted]\n.popsection\n"
		     :
		     : [cs] "m"(rs->rseq_cs), [cpu] "m"(rs->cpu_id), [counter] "r"(counter)
		     : "rax", "rcx", "rdx", "cc", "memory"
		     : aborted);
	return 1;
aborted:
	return 0;
}

#endif
#endif
