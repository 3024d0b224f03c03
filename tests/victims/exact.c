/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts its own calls: THREADS threads make OPS operations each on a shared table of blocks, so
 * that any thread can free a block.  Then prints the counts and the live blocks as JSON.
 * With a third argument it waits for a line on stdin before it starts, allocates markers before and
 * after the operations (7000001 and 7000002 bytes), and waits for another line before it ends.
 */
#include <pthread.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 4096

enum { MALLOC, CALLOC, REALLOC, REALLOC_FAILED, FREE, POSIX, ALIGNED, MMAP, MREMAP, MUNMAP, KINDS };
static const char *const name[KINDS] = {
    "malloc",	      "calloc",	       "realloc", "realloc_failed", "free",
    "posix_memalign", "aligned_alloc", "mmap",	  "mremap",	    "munmap"};

struct slot {
	void *p;
	size_t size;
};

static struct slot table[SLOTS];
static unsigned char lock[SLOTS];
static long ops;
static struct {
	long count[KINDS];
	long bytes;
} truth[64] __attribute__((aligned(64)));

static struct slot take(unsigned int i)
{
	struct slot s;

	while (__atomic_test_and_set(&lock[i], __ATOMIC_ACQUIRE))
		;
	s = table[i];
	table[i].p = NULL;
	__atomic_clear(&lock[i], __ATOMIC_RELEASE);
	return s;
}

/* Puts a block into a slot.  Return: the block that another thread has put there, to be freed. */
static struct slot put(unsigned int i, struct slot s)
{
	struct slot old;

	while (__atomic_test_and_set(&lock[i], __ATOMIC_ACQUIRE))
		;
	old = table[i];
	table[i] = s;
	__atomic_clear(&lock[i], __ATOMIC_RELEASE);
	return old;
}

static void give_back(long t, struct slot s)
{
	if (s.p) {
		truth[t].count[FREE]++;
		free(s.p);
	}
}

static void *volatile nowhere;

static void one(long t, unsigned int x)
{
	unsigned int i = x % SLOTS;
	struct slot s = take(i), n = {0};
	long failed = truth[t].count[REALLOC_FAILED];

	n.size = 1 + (x >> 8) % 1000;
	switch ((x >> 20) % 8) {
	case 0:
	case 1:
		n.p = malloc(n.size);
		truth[t].count[MALLOC]++;
		break;
	case 2:
		n.p = calloc(3, n.size);
		n.size *= 3;
		truth[t].count[CALLOC]++;
		break;
	case 3:
		if (posix_memalign(&n.p, 64, n.size))
			abort();
		truth[t].count[POSIX]++;
		break;
	case 4:
		n.size = (n.size + 63) / 64 * 64;
		n.p = aligned_alloc(64, n.size);
		truth[t].count[ALIGNED]++;
		break;
	case 5:
	case 6:
		if (!s.p)
			break;
		if (x >> 28 == 0) {
			nowhere = realloc(s.p, PTRDIFF_MAX); /* fails, the block stays */
			if (nowhere)
				abort();
			truth[t].count[REALLOC_FAILED]++;
			n = s;
		} else {
			n.p = realloc(s.p, n.size);
			truth[t].count[REALLOC]++;
		}
		s.p = NULL;
		break;
	}
	if (n.p && truth[t].count[REALLOC_FAILED] == failed)
		truth[t].bytes += (long)n.size;
	if (n.p)
		memset(n.p, (int)x, n.size < 16 ? n.size : 16);
	give_back(t, s);
	if (n.p)
		give_back(t, put(i, n));
}

static void map_once(long t)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;

	q = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
	munmap(q, 65536);
	truth[t].count[MMAP]++;
	truth[t].count[MREMAP]++;
	truth[t].count[MUNMAP]++;
}

static void *run(void *arg)
{
	long t = (long)arg;
	unsigned int x = (unsigned int)t * 7919 + 1;

	for (long i = 0; i < ops; i++) {
		x = x * 1664525 + 1013904223;
		one(t, x ^ x >> 13);
		if (i % 65536 == 0)
			map_once(t);
	}
	return NULL;
}

static void print_truth(long threads)
{
	long sum[KINDS] = {0}, bytes = 0, blocks = 0, allocated = 0;

	for (long t = 0; t < threads; t++) {
		allocated += truth[t].bytes;
		for (int k = 0; k < KINDS; k++)
			sum[k] += truth[t].count[k];
	}
	for (int i = 0; i < SLOTS; i++) {
		blocks += table[i].p != NULL;
		bytes += table[i].p ? (long)table[i].size : 0;
	}
	printf("{");
	for (int k = 0; k < KINDS; k++)
		printf("\"%s\": %ld, ", name[k], sum[k]);
	printf("\"live\": [");
	for (int i = 0; i < SLOTS; i++) {
		if (table[i].p)
			printf("[%lu, %zu], ", (unsigned long)table[i].p, table[i].size);
	}
	printf("[0, 0]], \"allocated_bytes\": %ld, \"live_blocks\": %ld, \"live_bytes\": %ld}\n",
	       allocated, blocks, bytes);
	fflush(stdout);
}

static void round_of(long threads)
{
	pthread_t th[64];

	for (long t = 0; t < threads; t++)
		pthread_create(&th[t], NULL, run, (void *)t);
	for (long t = 0; t < threads; t++)
		pthread_join(th[t], NULL);
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4;
	char line[16];

	ops = argc > 2 ? atol(argv[2]) : 2000000;
	setvbuf(stdout, malloc(8192), _IOFBF, 8192);
	if (argc > 3) {
		if (read(0, line, sizeof(line)) <= 0)
			return 2;
		nowhere = malloc(7000001);
		round_of(threads);
		nowhere = malloc(7000002);
		print_truth(threads);
		if (read(0, line, sizeof(line)) <= 0)
			return 2;
	} else {
		round_of(threads);
		print_truth(threads);
	}
	_exit(0);
}
