/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * soak LIBRARY: a program that works for long without growing.  At each line "N" on stdin it works
 * for N milliseconds: pairs of threads come, replace blocks and go, while the main thread loads and
 * unloads the library.  Then no thread is left but the main one, and it prints the blocks and bytes
 * that are live, as JSON.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLOTS	 8192 /* for each of two threads */
#define REPLACES 20000
#define DEEPEST	 8
#define LARGEST	 500

static struct slot {
	void *block;
	size_t size;
} slots[2][SLOTS];
static uint64_t threads, loads;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Different depths make different stacks. */
static __attribute__((noinline)) void *fill_slot(size_t size, uint32_t depth)
{
	void *volatile block = depth ? fill_slot(size, depth - 1) : malloc(size);

	if (!block)
		abort();
	return block;
}

static void *replace(void *part)
{
	struct slot *mine = part;
	uint64_t x = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < REPLACES; i++) {
		struct slot *s = &mine[next(&x) % SLOTS];

		free(s->block);
		s->size = 1 + next(&x) % LARGEST;
		s->block = fill_slot(s->size, (uint32_t)(next(&x) % DEEPEST));
	}
	return NULL;
}

static void work(const char *library)
{
	pthread_t t[2];
	void *l;

	for (int i = 0; i < 2; i++) {
		if (pthread_create(&t[i], NULL, replace, slots[i]))
			abort();
	}
	l = dlopen(library, RTLD_NOW);
	if (l && !dlclose(l))
		loads++;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void report(void)
{
	uint64_t blocks = 0, bytes = 0;

	for (int i = 0; i < 2 * SLOTS; i++) {
		blocks += slots[i / SLOTS][i % SLOTS].block != NULL;
		bytes += slots[i / SLOTS][i % SLOTS].size;
	}
	printf("{\"blocks\": %llu, \"bytes\": %llu, \"threads\": %llu, \"loads\": %llu}\n",
	       (unsigned long long)blocks, (unsigned long long)bytes, (unsigned long long)threads,
	       (unsigned long long)loads);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[32];

	if (argc < 2)
		return 2;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t until = now_ms() + strtoull(line, NULL, 10);

		while (now_ms() < until)
			work(argv[1]);
		report();
	}
	return 0;
}
