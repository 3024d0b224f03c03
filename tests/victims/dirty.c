/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts new blocks that contain bytes other than zero.  Overwrites all bytes of each block before
 * it frees it.  Prints the counts at SIGTERM, and at SIGUSR1, when it also resets them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t running = 1, restart;

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		running = 0;
	else
		restart = 1;
}

static int is_dirty(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i])
			return 1;
	}
	return 0;
}

int main(void)
{
	long dirty = 0, blocks = 0;

	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	for (size_t size = 1; running; size = size % 5000 + 7) {
		unsigned char *p[4];

		/* Before the blocks are allocated: none of those that it counts from now on is
		 * older than the signal. */
		if (restart) {
			restart = 0;
			printf("%ld of %ld\n", dirty, blocks);
			fflush(stdout);
			dirty = blocks = 0;
		}
		p[0] = malloc(size);
		p[1] = aligned_alloc(64, (size + 63) & ~63ul);
		p[2] = calloc(1, size);
		p[3] = malloc(size);
		for (int i = 0; i < 4; i++) {
			dirty += is_dirty(p[i], size);
			blocks++;
			memset(p[i], 0xa5, size);
			free(p[i]);
		}
		usleep(50);
	}
	printf("%ld of %ld\n", dirty, blocks);
	return 0;
}
