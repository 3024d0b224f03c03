/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts instructions on machines without performance counters: steps PID ADDRESS N.  Single-steps
 * a process from one arrival at ADDRESS to the Nth after it and prints instructions per arrival.
 * With a fourth argument also prints how often each address was executed, per arrival. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define MOST   50000000
#define PLACES 65536

static struct place {
	unsigned long pc, times;
} place[PLACES];

static void count(unsigned long pc)
{
	unsigned long i = pc * 0x9e3779b97f4a7c15ul >> 48;

	while (place[i].pc && place[i].pc != pc)
		i = (i + 1) % PLACES;
	place[i].pc = pc;
	place[i].times++;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 3 ? atoi(argv[1]) : 0;
	unsigned long address = argc > 3 ? strtoul(argv[2], NULL, 0) : 0;
	long arrivals = -1, wanted = argc > 3 ? atol(argv[3]) : 0, steps = 0;
	struct user_regs_struct regs;
	int status;

	if (pid <= 0 || wanted <= 0)
		return 2;
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, &status, __WALL) != pid) {
		perror("steps");
		return 1;
	}
	for (long i = 0; i < MOST && arrivals < wanted; i++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || waitpid(pid, &status, __WALL) != pid ||
		    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, 0, &regs))
			break;
		steps += arrivals >= 0;
		if (argc > 4 && arrivals >= 0)
			count(regs.rip);
		arrivals += regs.rip == address;
	}
	ptrace(PTRACE_DETACH, pid, 0, 0);
	if (arrivals < wanted)
		return 1;
	printf("%.1f\n", (double)steps / (double)wanted);
	for (long i = 0; i < PLACES; i++) {
		if (place[i].pc)
			printf("%lx %.3f\n", place[i].pc, (double)place[i].times / (double)wanted);
	}
	return 0;
}
