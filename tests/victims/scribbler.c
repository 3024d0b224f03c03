/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hostile target: overwrites the session block while it is recorded.  A forked child does that.
 * It shares the block but runs no hooks, so the recorded process itself survives.
 *
 *	scribbler MODE SEED	MODE: control, tables, rings, all
 *
 * Prints "scribbling" when the child begins.  At SIGTERM prints "ok N", the number of its rounds.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>
#include "formats/session.h"

#define PAGE	    4096ull
#define HEAD	    (256u << 10) /* control page and journal */
#define SLOT_STRIDE ((768ull << 10) + PAGE + (2ull << 20))
#define SLOT_RING   (768ull << 10)
#define RING	    (2ull << 20)
#define SLOTS	    512ull

static volatile sig_atomic_t stop;
static uint64_t rng;
static uint64_t *rounds; /* shared with the child */

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t next(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Finds the session block without calling malloc.  Return: its address, or NULL if there is none;
 * @length gets its length. */
static char *find_block(uint64_t *length)
{
	static char text[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY);
	ssize_t n, used = 0;
	char *hit, *line;

	while ((n = read(fd, text + used, sizeof(text) - 1 - (size_t)used)) > 0)
		used += n;
	close(fd);
	text[used] = 0;
	hit = strstr(text, "/memfd:memprof-session");
	if (!hit)
		return NULL;
	for (line = hit; line > text && line[-1] != '\n';)
		line--;
	*length = strtoull(strchr(line, '-') + 1, NULL, 16);
	*length -= strtoull(line, NULL, 16);
	return (char *)strtoull(line, NULL, 16);
}

/* Return: whether the hooks are installed. */
static bool is_live(const char *block)
{
	const struct ss_control *c = (const void *)block;
	const struct ss_journal *j = (const void *)(block + c->journal);

	return __atomic_load_n(&j->state, __ATOMIC_ACQUIRE) == SS_LIVE;
}

/* Return: a value that is likely to break checks: an extreme, a near miss, a pointer, noise. */
static uint64_t value(char *block, uint64_t length)
{
	switch (next() % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - next() % 64;
	case 2:
		return length - next() % 4096;
	case 3:
		return next() % 70000;
	case 4:
		return (uint64_t)block + next() % length;
	case 5:
		return next() % length;
	case 6:
		return 1ull << next() % 64;
	default:
		return next();
	}
}

static void words(char *block, uint64_t length, uint64_t from, uint64_t to, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t at = (from + next() % (to - from)) & ~7ull, v = value(block, length);

		*(volatile uint64_t *)(block + at) = v;
	}
}

/* Fills a ring with records, most of which have a valid form. */
static void ring(char *block, uint64_t length)
{
	char *slot = block + length - SLOTS * SLOT_STRIDE + next() % SLOTS * SLOT_STRIDE;
	char *page = slot + SLOT_RING, *data = page + PAGE;
	uint64_t at = 0, *head = (uint64_t *)(page + 1024);
	static const uint16_t size[] = {32, 40, 24, 24, 48, 56, 56, 56, 56, 56, 32, 184, 24};

	while (at + 4096 < RING) {
		uint64_t type = next() % 13, n = size[type], *rec = (uint64_t *)(data + at);

		if (type == 11)
			n += next() % 64 * 8;
		rec[0] = (0x4d01 + type) | (next() & 0xffff) << 32 | n << 48;
		rec[1] = next() % 16 ? __rdtsc() - next() % 100000 : value(block, length);
		for (uint64_t i = 2; i < n / 8; i++)
			rec[i] = next() % 4 ? next() % 64 * 4096 : value(block, length);
		if (next() % 5000 == 0)
			rec[0] = next();
		at += n;
	}
	*(volatile uint64_t *)slot = 1 + next();
	*(volatile uint64_t *)(slot + 8) = next();
	__atomic_store_n(head, next() % 16 ? head[1] + at : next(), __ATOMIC_RELEASE);
}

static void scribble(const char *mode, char *block, uint64_t length)
{
	bool all = !strcmp(mode, "all");
	uint64_t slots = length - SLOTS * SLOT_STRIDE;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (all || !strcmp(mode, "control")) {
			words(block, length, 0, PAGE, 8);
			words(block, length, PAGE, HEAD, 64);
		}
		if (all || !strcmp(mode, "tables"))
			words(block, length, HEAD, HEAD + (4u << 20), 256);
		if (all || !strcmp(mode, "rings")) {
			ring(block, length);
			words(block, length, slots, length, 64);
		}
		++*rounds;
		usleep(500);
	}
}

static void *idle(void *arg)
{
	while (!stop)
		usleep(1000);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t length = 0;
	char *block = NULL;
	pthread_t th[4];
	pid_t child;

	if (argc != 3)
		return 2;
	rng = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	signal(SIGTERM, on_term);
	alarm(300);
	rounds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&th[i], NULL, idle, NULL);
	while (!stop && !(block = find_block(&length)))
		usleep(2000);
	while (!stop && !is_live(block))
		usleep(2000);
	child = block && !stop ? fork() : 0;
	if (block && !stop && !child)
		scribble(argv[1], block, length);
	if (child > 0)
		dprintf(1, "scribbling\n");
	while (!stop)
		usleep(1000);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	dprintf(1, "ok %llu\n", (unsigned long long)*rounds);
	_exit(0);
}
