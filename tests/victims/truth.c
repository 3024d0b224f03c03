/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keeps a list of all its blocks in a shared file.
 *
 *	truth FILE park|run|idle THREADS
 *
 * Two waves of THREADS threads allocate, resize and free blocks, also each other's.  The threads of
 * the first wave then end and leave their blocks.  Those of the second wave wait (park) or continue
 * (run).  With idle the threads allocate nothing, or with TOUCH in the environment one block that they
 * free, so that all live blocks are libc's and the allocator's own.  With NO_BREAK the break cannot
 * grow.  With PLAIN the program calls only malloc,
 * realloc and free.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "truth.h"

#define STEPS	   60000
#define HUGE_SLOTS 1
#define BIG_SLOTS  48

static struct truth *truth;
static bool run_on, idle, touch, plain;

struct worker {
	uint32_t index;
	bool last_wave;
	uint64_t random;
};

static uint64_t rnd(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static size_t any_size(struct worker *w, uint32_t slot)
{
	if (slot < HUGE_SLOTS)
		return (1u << 20) + rnd(w) % (24u << 20);
	if (slot < BIG_SLOTS)
		return 20000 + rnd(w) % (300u << 10);
	switch (rnd(w) % 16) {
	case 0:
		return 1 + rnd(w) % 4000;
	case 1:
		return 1 + rnd(w) % 16000;
	default:
		return 1 + rnd(w) % 300;
	}
}

static void *allocate(struct worker *w, size_t size)
{
	void *p = NULL;

	switch (plain ? 3 : rnd(w) % 12) {
	case 0:
		return calloc(1, size);
	case 1:
		return memalign((size_t)16 << rnd(w) % 8, size);
	case 2:
		return posix_memalign(&p, (size_t)64 << rnd(w) % 11, size) ? NULL : p;
	default:
		return malloc(size);
	}
}

static void keep(struct truth_block *b, void *p)
{
	if (!p)
		abort();
	b->usable = malloc_usable_size(p);
	((char *)p)[0] = 1;
	((char *)p)[b->usable - 1] = 1;
	atomic_store(&b->addr, (uintptr_t)p);
}

/* Only its owner fills and resizes a slot; any thread can empty it. */
static void step(struct worker *w)
{
	uint32_t slot = (uint32_t)(rnd(w) % TRUTH_SLOTS), other;
	struct truth_block *b;
	void *p;

	if (rnd(w) % 256 == 0)
		slot %= BIG_SLOTS;
	b = &truth->block[(size_t)w->index * TRUTH_SLOTS + slot];
	if (!atomic_load(&b->addr)) {
		keep(b, allocate(w, any_size(w, slot)));
	} else if (rnd(w) % 3 == 0) {
		atomic_fetch_add(&truth->resizing, 1);
		p = (void *)(uintptr_t)atomic_exchange(&b->addr, 0);
		if (p)
			keep(b, realloc(p, any_size(w, slot)));
		atomic_fetch_sub(&truth->resizing, 1);
	} else {
		other = (uint32_t)(rnd(w) % truth->owners);
		if (rnd(w) % 2 == 0)
			b = &truth->block[(size_t)other * TRUTH_SLOTS + slot];
		free((void *)(uintptr_t)atomic_exchange(&b->addr, 0));
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	if (touch)
		free(allocate(w, 1));
	for (int i = 0; !idle && i < STEPS; i++)
		step(w);
	if (!w->last_wave)
		return NULL;
	atomic_fetch_add(&truth->ready, 1);
	while (run_on)
		step(w);
	for (;;)
		pause();
}

static void wave(struct worker *workers, uint32_t n, bool last)
{
	pthread_t id[n];

	for (uint32_t i = 0; i < n; i++) {
		workers[i].last_wave = last;
		if (pthread_create(&id[i], NULL, work, &workers[i]))
			abort();
	}
	for (uint32_t i = 0; !last && i < n; i++)
		pthread_join(id[i], NULL);
}

/* Maps a page where the break would grow. */
static void block_break(void)
{
	uintptr_t page = ((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095;

	if (mmap((void *)page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		abort();
}

int main(int argc, char **argv)
{
	uint32_t n = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
	size_t size = sizeof(*truth) + 2ul * n * TRUTH_SLOTS * sizeof(struct truth_block);
	static struct worker workers[2 * 256];
	int fd;

	if (!n || n > 256)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getenv("NO_BREAK"))
		block_break();
	run_on = !strcmp(argv[2], "run");
	idle = !strcmp(argv[2], "idle");
	plain = getenv("PLAIN");
	touch = getenv("TOUCH");
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		return 1;
	truth = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (truth == MAP_FAILED)
		return 1;
	truth->owners = 2 * n;
	for (uint32_t i = 0; i < 2 * n; i++) {
		workers[i].index = i;
		workers[i].random = 0x9e3779b97f4a7c15u * (i + 1);
	}
	wave(workers, n, false);
	wave(workers + n, n, true);
	for (;;)
		pause();
}
