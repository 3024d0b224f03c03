/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that memory has the contents that were written to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "chaos.h"

#define SLOTS 256
#define PAGE  65536 /* the largest page size of all kernels */
#define PAGES 16

/* A block begins with its number and size; the number determines the byte that fills the rest. */
static unsigned char fill_of(uint32_t number)
{
	return (unsigned char)(number * 37 + 11);
}

static void *block_new(uint32_t number, size_t n)
{
	uint32_t *p = number & 1 ? malloc(n) : calloc(1, n);

	if (!p)
		give_up("malloc");
	p[0] = number;
	p[1] = (uint32_t)n;
	memset(p + 2, fill_of(number), n - 8);
	return p;
}

static void block_right(struct actor *a, const uint32_t *p, uint32_t number)
{
	const unsigned char *at = (const unsigned char *)(p + 2);
	size_t n = p[1] - 8, i = 0;

	if (!must(a, p[0] == number, "a block: expected the number %u, got %u", number, p[0]))
		return;
	while (i < n && at[i] == fill_of(number))
		i++;
	must(a, i == n, "block %u of %u bytes: expected %#x at %zu, got %#x", number, p[1],
	     fill_of(number), i, i < n ? at[i] : 0);
}

struct slots {
	struct actor *a;
	_Atomic(uint32_t *) at[SLOTS];
	atomic_uint number;
};

/* Takes blocks out of the slots, checks them and puts others there; runs in two threads. */
static void *churn(void *arg)
{
	struct slots *s = arg;
	uint32_t x = (uint32_t)(uintptr_t)&x | 1;

	for (int i = 0; i < 4000; i++) {
		uint32_t number = ++s->number, *p;
		size_t n;

		x = x * 1664525 + 1013904223;
		n = 8 + (x >> 16) % 600 + (x >> 28 ? 0 : (x >> 8) % 300000);
		p = atomic_exchange(&s->at[x % SLOTS], NULL);
		if (p) {
			block_right(s->a, p, p[0]);
			if (x & 0x8000) {
				size_t old = p[1];
				uint32_t was = p[0];

				p = realloc(p, old + 5000);
				memset((char *)p + old, fill_of(was), 5000);
				p[1] = (uint32_t)old + 5000;
				block_right(s->a, p, was);
			}
			free(p);
		}
		p = atomic_exchange(&s->at[x % SLOTS], block_new(number, n));
		free(p);
		if (i % 512 == 0)
			pause_us(2000);
	}
	return NULL;
}

static void heap_round(struct actor *a)
{
	struct slots s = {.a = a};
	pthread_t th = begin(churn, &s);

	churn(&s);
	pthread_join(th, NULL);
	for (int i = 0; i < SLOTS; i++) {
		if (s.at[i])
			block_right(a, s.at[i], s.at[i][0]);
		free(s.at[i]);
	}
}

static bool page_is(const unsigned char *p, unsigned char byte)
{
	return p[0] == byte && p[PAGE / 2] == byte && !memcmp(p, p + 1, PAGE - 1);
}

static void mappings_round(struct actor *a)
{
	unsigned char *m =
	    mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *other;

	if (m == MAP_FAILED)
		give_up("mmap");
	for (int i = 0; i < PAGES; i++)
		memset(m + i * PAGE, i + 1, PAGE);
	pause_us(3000);
	must(a, !madvise(m, 4 * PAGE, MADV_DONTNEED), "madvise: expected 0, got %s",
	     strerror(errno));
	must(a, !mprotect(m + 4 * PAGE, PAGE, PROT_READ), "mprotect: expected 0, got %s",
	     strerror(errno));
	pause_us(3000);
	for (int i = 0; i < PAGES; i++)
		must(a, page_is(m + i * PAGE, i < 4 ? 0 : (unsigned char)(i + 1)),
		     "page %d: expected to be full of %d, it is not", i, i < 4 ? 0 : i + 1);
	must(a, !mprotect(m + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE),
	     "mprotect: expected 0, got %s", strerror(errno));
	other = mremap(m + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	must(a, other != MAP_FAILED, "mremap: expected an address, got %s", strerror(errno));
	memset(m + 4 * PAGE, 99, PAGE);
	pause_us(3000);
	other = mremap(m + 4 * PAGE, 4 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	if (must(a, other != MAP_FAILED && other != m + 4 * PAGE,
		 "mremap: expected another address, got %p (%s)", (void *)other, strerror(errno))) {
		must(a,
		     page_is(other, 99) && page_is(other + PAGE, 6) &&
			 page_is(other + 11 * PAGE, 0),
		     "mremap: expected the pages to have moved with what they hold");
		munmap(other, 12 * PAGE);
	}
	munmap(m, 4 * PAGE);
	munmap(m + 8 * PAGE, 8 * PAGE);
}

/* A child must see the memory as it was at fork(), whatever the parent writes afterwards. */
void snapshot_round(struct actor *a)
{
	unsigned char *m =
	    mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *shared =
	    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (m == MAP_FAILED || shared == MAP_FAILED)
		give_up("mmap");
	memset(m, 5, PAGES * PAGE);
	pid = fork();
	if (!pid) {
		int wrong = 0;

		usleep(5000);
		for (int i = 0; i < PAGES; i++)
			wrong += !page_is(m + i * PAGE, 5);
		memset(m, 7, PAGES * PAGE);
		shared[0] = 1;
		_exit(wrong);
	}
	memset(m, 6, PAGES * PAGE);
	must(a, waitpid(pid, &status, 0) == pid && !status,
	     "fork: expected the child to see the memory as it was, %d pages were not",
	     WEXITSTATUS(status));
	for (int i = 0; i < PAGES; i++)
		must(a, page_is(m + i * PAGE, 6),
		     "fork: expected the parent's page %d untouched by the child", i);
	must(a, shared[0] == 1, "MAP_SHARED: expected the child's byte");
	munmap(m, PAGES * PAGE);
	munmap(shared, PAGE);
}

struct actor memory[] = {
    {.name = "heap",
     .round = heap_round,
     .guaranteed = "blocks of malloc(), calloc(), realloc() hold what was written, whichever "
		   "thread frees them"},
    {.name = "mappings",
     .round = mappings_round,
     .guaranteed =
	 "mmap(), mprotect(), madvise(), mremap(), munmap(): pages hold what they should"},
    {0}};
