/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records all of its blocks in a table: every allocation of the process, including those of
 * libraries, goes through wrappers.  The table has the complements of the addresses, so that it is
 * not a root.
 *
 *	blocks park|run THREADS [noncontig] [foreign] [leaks N]
 *
 * The threads work for a while.  Then they wait (park) or continue to work (run).  Prints a line
 * "leak ADDR SIZE" for each of N planted leaks (ADDR is the complement of the address), then "table
 * ADDR SLOTS" and "ready".  noncontig: brk() fails, so the heap is not contiguous.  foreign: the
 * program calls sbrk() itself.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS (1u << 21)
#define HELD  10000 /* maximum number of blocks of a thread */
#define LOOPS 60000

struct slot {
	_Atomic uint64_t addr; /* complement of the address; 0: free; 1: was used */
	_Atomic uint64_t size;
};
static struct slot *table;
static atomic_int table_made;

static struct slot *get_table(void)
{
	int none = 0;

	if (atomic_load(&table_made) == 2)
		return table;
	if (atomic_compare_exchange_strong(&table_made, &none, 1)) {
		table = mmap(NULL, SLOTS * sizeof(*table), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		atomic_store(&table_made, 2);
	}
	while (atomic_load(&table_made) != 2)
		;
	return table;
}

static uint32_t hash(uint64_t a)
{
	return (uint32_t)((a >> 4) * 0x9e3779b97f4a7c15ull >> 32) % SLOTS;
}

static void *note(void *p)
{
	struct slot *t = get_table();
	uint64_t key = ~(uint64_t)(uintptr_t)p;

	if (!p)
		return p;
	for (uint32_t i = hash((uintptr_t)p);; i = (i + 1) % SLOTS) {
		uint64_t old = atomic_load(&t[i].addr);

		if (old > 1)
			continue;
		if (atomic_compare_exchange_strong(&t[i].addr, &old, key)) {
			atomic_store(&t[i].size, malloc_usable_size(p));
			return p;
		}
	}
}

static void forget(void *p)
{
	struct slot *t = get_table();
	uint64_t key = ~(uint64_t)(uintptr_t)p;

	if (!p)
		return;
	for (uint32_t i = hash((uintptr_t)p), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
		if (atomic_load(&t[i].addr) == key) {
			atomic_store(&t[i].addr, 1);
			return;
		}
		if (!atomic_load(&t[i].addr))
			return;
	}
}

#ifdef WRAP /* static: ld --wrap */
#define REAL(f) __real_##f
#define OURS(f) __wrap_##f
#else
#define REAL(f) __libc_##f
#define OURS(f) f
#endif
void *REAL(malloc)(size_t);
void *REAL(calloc)(size_t, size_t);
void *REAL(realloc)(void *, size_t);
void *REAL(memalign)(size_t, size_t);
void REAL(free)(void *);
void *OURS(malloc)(size_t);
void *OURS(calloc)(size_t, size_t);
void *OURS(realloc)(void *, size_t);
void *OURS(memalign)(size_t, size_t);
void OURS(free)(void *);
int OURS(posix_memalign)(void **, size_t, size_t);
void *OURS(aligned_alloc)(size_t, size_t);

void *OURS(malloc)(size_t n)
{
	return note(REAL(malloc)(n));
}

void *OURS(calloc)(size_t n, size_t m)
{
	return note(REAL(calloc)(n, m));
}

void *OURS(realloc)(void *p, size_t n)
{
	void *q;

	forget(p);
	q = REAL(realloc)(p, n);
	return n || !p ? note(q ? q : p) : q;
}

void *OURS(memalign)(size_t a, size_t n)
{
	return note(REAL(memalign)(a, n));
}

int OURS(posix_memalign)(void **p, size_t a, size_t n)
{
	*p = note(REAL(memalign)(a, n));
	return 0;
}

void *OURS(aligned_alloc)(size_t a, size_t n)
{
	return note(REAL(memalign)(a, n));
}

void OURS(free)(void *p)
{
	forget(p);
	REAL(free)(p);
}

static void **held[256];
static atomic_int working;
static int keep_running;

static size_t some_size(uint64_t r)
{
	switch (r % 64) {
	case 0:
		return 130000 + r / 64 % 300000;
	case 1:
		return 4096 + r / 64 % 60000;
	case 2 ... 12:
		return r / 64 % 5000;
	default:
		return r / 64 % 300;
	}
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Clears registers and the stack below the stack pointer, where the functions before left addresses. */
static __attribute__((noinline)) void clear_stack(void)
{
	volatile char room[16384];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static __attribute__((noinline)) void churn(void *arg)
{
	uint64_t n = (uint64_t)(uintptr_t)arg, x = 88172645463325252ull * (n + 1);
	void **mine = held[n];

	for (uint64_t i = 0; keep_running || i < LOOPS; i++) {
		uint64_t r = next_random(&x);
		void **p = &mine[r % HELD];

		r = next_random(&x);
		if (r % 8 == 0) {
			free(*p);
			*p = NULL;
		} else if (r % 8 == 1) {
			*p = realloc(*p, 1 + some_size(r >> 3));
		} else if (r % 64 == 2) {
			free(*p);
			*p = memalign(32u << (r >> 6) % 8, some_size(r >> 9));
		} else if (!*p) {
			*p = r % 8 == 3 ? calloc(1, some_size(r >> 3)) : malloc(some_size(r >> 3));
		}
		/* Overwrite what the allocator left in it, which can be pointers. */
		if (*p)
			memset(*p, 0x22, malloc_usable_size(*p));
		if (i == LOOPS)
			atomic_fetch_sub(&working, 1);
	}
}

static void *work(void *arg)
{
	churn(arg);
	/* A planted leak can get the address of a block that this thread has freed. */
	clear_stack();
	atomic_fetch_sub(&working, 1);
	for (;;)
		pause();
	return NULL;
}

static __attribute__((noinline)) void plant(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = 16 + 24 * (i % 7);
		uint64_t *p = malloc(size);

		memset(p, 0x11, size);
		printf("leak %llx %zu\n", (unsigned long long)~(uint64_t)(uintptr_t)p,
		       malloc_usable_size(p));
		p = NULL;
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	size_t leaks = 0;

	keep_running = argc > 1 && !strcmp(argv[1], "run");
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "foreign")) {
			for (int k = 0; k < 5; k++) {
				held[200 + k] = malloc(200000u);
				memset(sbrk(70000 + 16 * k), 0x5a, 1000);
				for (int j = 0; j < 50; j++)
					note(REAL(malloc)(1000));
			}
		} else if (!strcmp(argv[i], "noncontig")) {
			/* Map a page right after the heap: brk() fails from now on. */
			mmap(sbrk(0), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			     0);
		} else if (!strcmp(argv[i], "leaks")) {
			leaks = (size_t)atol(argv[++i]);
		}
	}
	atomic_store(&working, threads);
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		held[i] = mmap(NULL, HELD * sizeof(void *), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (threads == 1 && !keep_running)
			break;
		pthread_create(&t, NULL, work, (void *)(uintptr_t)i);
	}
	if (threads == 1 && !keep_running) {
		uint64_t x = 1;

		for (int i = 0; i < 30000; i++) {
			void **p = &held[0][next_random(&x) % HELD];

			free(*p);
			*p = malloc(some_size(next_random(&x)));
			memset(*p, 0x22, malloc_usable_size(*p));
		}
	} else {
		while (atomic_load(&working))
			usleep(1000);
	}
	plant(leaks);
	clear_stack();
	printf("table %llx %u\n", (unsigned long long)(uintptr_t)get_table(), SLOTS);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
