/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/live.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "lib/wide.h"

#define FIRST	  4096u
#define HUGE	  (8u << 20)
#define ADDR_MASK ((1ull << 48) - 1)

struct slot {
	uint64_t addr_size; /* address in the lower 48 bits, bits 32..47 of the size above */
	uint32_t size, stack;
};

struct live {
	struct slot *slot;
	uint64_t cap, n;
	unsigned int percent;
};

/* Multiply-shift onto [0, cap): any capacity, and monotonic in the hash. */
static inline uint64_t home(const struct live *l, uint64_t addr)
{
	uint64_t h = (addr >> 4) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return wide_high(h, l->cap);
}

static inline uint64_t next(const struct live *l, uint64_t i)
{
	return i + 1 == l->cap ? 0 : i + 1;
}

/* A table is looked up at random: large pages spare it most of its address translations. */
static struct slot *slots_new(uint64_t cap)
{
	size_t size = cap * sizeof(struct slot);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (size >= HUGE)
		(void)madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static void slots_free(struct slot *s, uint64_t cap)
{
	if (s)
		munmap(s, cap * sizeof(*s));
}

struct live *live_new(unsigned int percent)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->cap = FIRST;
	l->percent = percent;
	l->slot = slots_new(l->cap);
	if (!l->slot) {
		free(l);
		return NULL;
	}
	return l;
}

void live_expect(struct live *l, uint64_t blocks)
{
	/* It will not grow: a quarter less full costs no more memory than growing would. */
	uint64_t cap = (blocks / (l->percent * 3 / 4) + 1) * 100 + FIRST;
	struct slot *slot = !l->n && cap > l->cap ? slots_new(cap) : NULL;

	if (!slot)
		return;
	slots_free(l->slot, l->cap);
	l->slot = slot;
	l->cap = cap;
}

void live_free(struct live *l)
{
	if (l)
		slots_free(l->slot, l->cap);
	free(l);
}

static void unpack(const struct slot *s, struct live_block *b)
{
	b->addr = s->addr_size & ADDR_MASK;
	b->size = s->size | s->addr_size >> 48 << 32;
	b->stack = s->stack;
}

static int grow(struct live *l)
{
	struct live bigger = {.cap = l->cap + l->cap / 4, .n = l->n, .percent = l->percent};

	bigger.slot = slots_new(bigger.cap);
	if (!bigger.slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->cap; i++) {
		uint64_t k;

		if (!l->slot[i].addr_size)
			continue;
		for (k = home(&bigger, l->slot[i].addr_size & ADDR_MASK); bigger.slot[k].addr_size;
		     k = next(&bigger, k))
			;
		bigger.slot[k] = l->slot[i];
	}
	slots_free(l->slot, l->cap);
	*l = bigger;
	return 0;
}

int live_put(struct live *l, const struct live_block *b, struct live_block *old)
{
	uint64_t i, size = b->size > LIVE_MAX_SIZE ? LIVE_MAX_SIZE : b->size;

	old->addr = 0;
	if (l->n >= l->cap / 100 * l->percent && grow(l))
		return -ENOMEM;
	for (i = home(l, b->addr); l->slot[i].addr_size; i = next(l, i)) {
		if ((l->slot[i].addr_size & ADDR_MASK) == b->addr) {
			unpack(&l->slot[i], old);
			l->n--;
			break;
		}
	}
	l->slot[i] = (struct slot){b->addr | size >> 32 << 48, (uint32_t)size, b->stack};
	l->n++;
	return 0;
}

static uint64_t find(const struct live *l, uint64_t addr)
{
	uint64_t i = home(l, addr);

	while (l->slot[i].addr_size && (l->slot[i].addr_size & ADDR_MASK) != addr)
		i = next(l, i);
	return i;
}

bool live_find(const struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t i = find(l, addr);

	if (l->slot[i].addr_size)
		unpack(&l->slot[i], b);
	return l->slot[i].addr_size;
}

bool live_take(struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t i = find(l, addr), hole, k;

	if (!l->slot[i].addr_size)
		return false;
	unpack(&l->slot[i], b);
	l->n--;
	/* Close the gap: a later one moves up unless that would put it before its home. */
	hole = i;
	for (k = next(l, hole); l->slot[k].addr_size; k = next(l, k)) {
		uint64_t h = home(l, l->slot[k].addr_size & ADDR_MASK);
		bool stays = hole < k ? (h > hole && h <= k) : (h > hole || h <= k);

		if (stays)
			continue;
		l->slot[hole] = l->slot[k];
		hole = k;
	}
	l->slot[hole].addr_size = 0;
	return true;
}

void live_prefetch(const struct live *l, uint64_t addr)
{
	__builtin_prefetch(&l->slot[home(l, addr)], 1);
}

bool live_next(const struct live *l, uint64_t *at, struct live_block *b)
{
	while (*at < l->cap && !l->slot[*at].addr_size)
		++*at;
	if (*at == l->cap)
		return false;
	unpack(&l->slot[(*at)++], b);
	return true;
}

size_t live_count(const struct live *l)
{
	return l->n;
}

size_t live_memory(const struct live *l)
{
	return l->cap * sizeof(struct slot);
}
