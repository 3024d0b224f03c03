/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocates in a loop.  At SIGUSR1 makes a child process that shares its memory but is not a thread
 * (clone() with CLONE_VM only), and prints its pid.  SIGUSR2 ends the child, SIGTERM both
 * processes; then prints "ok".
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t begin, end, stop;

static void on_signal(int sig)
{
	begin |= sig == SIGUSR1;
	end |= sig != SIGUSR1;
	stop |= sig == SIGTERM;
}

static int child(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!end)
		usleep(1000);
	return arg != NULL;
}

int main(void)
{
	static char stack[64 << 10];
	pid_t pid = 0;

	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	alarm(300);
	dprintf(1, "ready\n");
	while (!stop) {
		int status;

		free(malloc(100));
		usleep(100);
		if (begin && !pid) {
			pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
			dprintf(1, "%d\n", pid);
		}
		if (end && pid > 0) {
			if (waitpid(pid, &status, 0) != pid || status)
				return 1;
			pid = -1;
			if (!stop)
				dprintf(1, "alone\n");
		}
	}
	dprintf(1, "ok\n");
	return 0;
}
