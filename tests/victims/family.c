/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 *	family [PAUSE]
 *
 * A server that forks while its threads allocate without pause, or with a pause of PAUSE
 * microseconds after every 10000 blocks.  Commands on stdin: "fork" (makes a child, prints its
 * pid), "storm N" (forks N children that allocate, check and end, and spawns N others), "exec
 * PROGRAM" (executes it in a child that has allocated, prints its pid), "quit".  At SIGUSR1 a child
 * leaks ten blocks of 5000 bytes and prints "done".  At SIGUSR2 it forks a child and prints its
 * pid.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Allocates, fills, checks, frees. */
static int churn(unsigned int seed, int rounds)
{
	unsigned char *p[64] = {0};
	size_t size[64] = {0};

	for (int i = 0; i < rounds; i++) {
		int k = i % 64;

		for (size_t b = 0; p[k] && b < size[k]; b++) {
			if (p[k][b] != (unsigned char)k)
				return 1;
		}
		free(p[k]);
		seed = seed * 1103515245 + 12345;
		size[k] = 1 + (seed >> 16) % 300;
		p[k] = malloc(size[k]);
		if (!p[k])
			return 1;
		memset(p[k], k, size[k]);
	}
	for (int k = 0; k < 64; k++)
		free(p[k]);
	return 0;
}

static useconds_t pause_us;

static void *load(void *arg)
{
	for (unsigned int i = (unsigned int)(uintptr_t)arg;; i++) {
		if (churn(i, 10000))
			abort();
		if (pause_us)
			usleep(pause_us);
	}
	return NULL;
}

static void say(const char *what)
{
	if (write(1, what, strlen(what)) < 0)
		_exit(3);
}

static _Noreturn void child(void)
{
	static void *leaked[10];
	sigset_t set;
	char line[32];
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	for (;;) {
		if (churn((unsigned int)getpid(), 2000))
			abort();
		sigwait(&set, &sig);
		if (sig == SIGTERM)
			exit(0);
		if (sig == SIGUSR2) {
			pid_t pid = fork();

			if (!pid)
				continue; /* the new child does what its parent does */
			snprintf(line, sizeof(line), "%d\n", pid);
			say(line);
			continue;
		}
		for (int i = 0; i < 10; i++)
			leaked[i] = malloc(5000);
		say(leaked[9] ? "done\n" : "failed\n");
	}
}

static int storm(int n)
{
	char *argv[] = {"true", NULL};
	int bad = 0, status;
	pid_t pid;

	for (int i = 0; i < n; i++) {
		pid = fork();
		if (!pid)
			_exit(churn((unsigned int)i, 500));
		bad += waitpid(pid, &status, 0) != pid || status;
		bad += posix_spawnp(&pid, "true", NULL, NULL, argv, environ) ||
		       waitpid(pid, &status, 0) != pid || status;
	}
	return bad;
}

static void on_line(char *line)
{
	char *argv[] = {NULL, NULL}, out[32];
	pid_t pid;

	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, "storm ", 6)) {
		snprintf(out, sizeof(out), "bad %d\n", storm(atoi(line + 6)));
		say(out);
		return;
	}
	pid = fork();
	if (!pid && !strncmp(line, "exec ", 5)) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		churn(1, 1000);
		argv[0] = line + 5;
		execv(argv[0], argv);
		_exit(127);
	}
	if (!pid)
		child();
	snprintf(out, sizeof(out), "%d\n", pid);
	say(out);
}

int main(int argc, char **argv)
{
	char line[512];
	sigset_t set;
	pthread_t t;

	pause_us = argc > 1 ? (useconds_t)atol(argv[1]) : 0;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&t, NULL, load, (void *)(i * 1000));
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "quit", 4))
		on_line(line);
	return 0;
}
