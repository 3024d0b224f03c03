/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * names FILE: the names of its function, its source file and its thread have control characters.
 * Allocates, maps FILE, and leaks, until SIGTERM.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t running = 1;
static void *kept;

#line 1 "so\033[31murce\n.c"
/* The name has a colour sequence, a right-to-left override, and the 8-bit code of CSI. */
void *allocate(size_t n) __asm__("\"allo\033[31mcate\xe2\x80\xae\x9b\"");

__attribute__((noinline, noipa)) void *allocate(size_t n)
{
	char *p = malloc(n);

	if (p)
		strcpy(p, "con\033[31mtent\n");
	return p;
}

static void stop(int sig)
{
	(void)sig;
	running = 0;
}

static void *work(void *arg)
{
	pthread_setname_np(pthread_self(), "thr\033[31med\n\x9b");
	while (running) {
		free(kept);
		kept = allocate(300);
		*(void *volatile *)&arg = allocate(200); /* leaked */
		usleep(2000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR);
	char *map;
	pthread_t t;

	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	*map = 1;
	signal(SIGTERM, stop);
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	puts("ok");
	return 0;
}
