/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/live.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "lib/wide.h"

#define FIRST	  1024u
#define HUGE	  (8u << 20)
#define ADDR_MASK ((1ull << 48) - 1)
#define WAYS	  4u
#define WEIGHT	  0xffe0u

struct slot {
	/* Address in the lower 48 bits, above them bits 32..47 of the size, or WEIGHT and the
	 * weight. */
	uint64_t addr_size;
	uint32_t size, stack;
};

/*
 * A cache line.  Blocks are before free slots.  A block is in the first bucket, from its home
 * bucket on, that had room, so all buckets in between are full.
 */
struct bucket {
	struct slot slot[WAYS];
};

struct live {
	struct bucket *bucket;
	uint64_t cap, n; /* buckets, blocks */
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

static inline bool full(const struct bucket *b)
{
	return b->slot[WAYS - 1].addr_size;
}

static inline unsigned int used(const struct bucket *b)
{
	return !!b->slot[0].addr_size + !!b->slot[1].addr_size + !!b->slot[2].addr_size +
	       !!b->slot[3].addr_size;
}

static inline unsigned int is_at(const struct slot *s, uint64_t addr)
{
	return (s->addr_size & ADDR_MASK) == addr;
}

/* Return: the slot of @addr in @b, WAYS if there is none; for @addr 0, the first free slot.  Has no
 * branches, since the processor could not predict them. */
static inline unsigned int way_of(const struct bucket *b, uint64_t addr)
{
	const struct slot *s = b->slot;

	return (unsigned int)__builtin_ctz(is_at(&s[0], addr) | is_at(&s[1], addr) << 1 |
					   is_at(&s[2], addr) << 2 | is_at(&s[3], addr) << 3 |
					   1u << WAYS);
}

/* Accesses to the table are random: huge pages avoid most TLB misses. */
static struct bucket *buckets_new(uint64_t cap)
{
	size_t size = cap * sizeof(struct bucket);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (size >= HUGE)
		(void)madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static void buckets_free(struct bucket *b, uint64_t cap)
{
	if (b)
		munmap(b, cap * sizeof(*b));
}

struct live *live_new(unsigned int percent)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->cap = FIRST;
	l->percent = percent;
	l->bucket = buckets_new(l->cap);
	if (!l->bucket) {
		free(l);
		return NULL;
	}
	return l;
}

void live_expect(struct live *l, uint64_t blocks)
{
	uint64_t cap = (blocks / l->percent + 1) * 100 / WAYS + FIRST;
	struct bucket *bucket = !l->n && cap > l->cap ? buckets_new(cap) : NULL;

	if (!bucket)
		return;
	buckets_free(l->bucket, l->cap);
	l->bucket = bucket;
	l->cap = cap;
}

void live_free(struct live *l)
{
	if (l)
		buckets_free(l->bucket, l->cap);
	free(l);
}

static void unpack(const struct slot *s, struct live_block *b)
{
	uint64_t high = s->addr_size >> 48;

	b->addr = s->addr_size & ADDR_MASK;
	b->weight = high > WEIGHT ? (uint8_t)(high - WEIGHT) : 0;
	b->size = s->size | (b->weight ? 0 : high << 32);
	b->stack = s->stack;
}

static uint64_t pack(const struct live_block *b, uint64_t size)
{
	return b->addr | (b->weight ? WEIGHT + b->weight : size >> 32) << 48;
}

static int grow(struct live *l)
{
	struct live bigger = {.cap = l->cap + l->cap / 4, .n = l->n, .percent = l->percent};

	bigger.bucket = buckets_new(bigger.cap);
	if (!bigger.bucket)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->cap; i++) {
		for (unsigned int w = 0; w < used(&l->bucket[i]); w++) {
			const struct slot *s = &l->bucket[i].slot[w];
			uint64_t k = home(&bigger, s->addr_size & ADDR_MASK);

			while (full(&bigger.bucket[k]))
				k = next(&bigger, k);
			bigger.bucket[k].slot[used(&bigger.bucket[k])] = *s;
		}
	}
	buckets_free(l->bucket, l->cap);
	*l = bigger;
	return 0;
}

/* Return: the slot of @addr, or NULL.  @at: set to its bucket, or else to the first bucket with
 * room from its home on. */
static inline struct slot *find(const struct live *l, uint64_t addr, uint64_t *at)
{
	for (uint64_t i = home(l, addr);; i = next(l, i)) {
		struct bucket *b = &l->bucket[i];
		unsigned int way = way_of(b, addr);

		*at = i;
		if (way < WAYS)
			return b->slot[way].addr_size ? &b->slot[way] : NULL;
		if (!full(b))
			return NULL;
	}
}

int live_put(struct live *l, const struct live_block *b, struct live_block *old)
{
	uint64_t at, size = b->size > LIVE_MAX_SIZE ? LIVE_MAX_SIZE : b->size;
	struct slot *s;

	old->addr = 0;
	if (l->n >= l->cap * WAYS / 100 * l->percent && grow(l))
		return -ENOMEM;
	s = find(l, b->addr, &at);
	if (s) {
		unpack(s, old);
	} else {
		s = &l->bucket[at].slot[used(&l->bucket[at])];
		l->n++;
	}
	*s = (struct slot){pack(b, size), (uint32_t)size, b->stack};
	return 0;
}

bool live_find(const struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t at;
	const struct slot *s = find(l, addr, &at);

	if (s)
		unpack(s, b);
	return s;
}

/* Return: a block in bucket @at whose home is at or before bucket @hole, so that it went past
 * @hole when that was full, or NULL. */
static struct slot *strayed(const struct live *l, uint64_t hole, uint64_t at)
{
	for (unsigned int way = used(&l->bucket[at]); way--;) {
		struct slot *s = &l->bucket[at].slot[way];
		uint64_t h = home(l, s->addr_size & ADDR_MASK);

		if (hole < at ? h <= hole || h > at : h <= hole && h > at)
			return s;
	}
	return NULL;
}

/* Removes @s from bucket @i; the last block of the bucket moves to its place. */
static void vacate(const struct live *l, uint64_t i, struct slot *s)
{
	struct slot *last = &l->bucket[i].slot[used(&l->bucket[i]) - 1];

	*s = *last;
	last->addr_size = 0;
}

bool live_take(struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t hole, at;
	struct slot *s = find(l, addr, &hole), *to;
	bool was_full;

	if (!s)
		return false;
	unpack(s, b);
	l->n--;
	was_full = full(&l->bucket[hole]);
	vacate(l, hole, s);
	/* Move blocks that went past the full bucket back, so that no search ends too early. */
	for (at = hole; was_full;) {
		at = next(l, at);
		was_full = full(&l->bucket[at]);
		s = strayed(l, hole, at);
		if (!s)
			continue;
		to = &l->bucket[hole].slot[WAYS - 1];
		*to = *s;
		vacate(l, at, s);
		hole = at;
	}
	return true;
}

void live_prefetch(const struct live *l, uint64_t addr)
{
	__builtin_prefetch(&l->bucket[home(l, addr)], 1);
}

bool live_next(const struct live *l, uint64_t *at, struct live_block *b)
{
	const struct slot *s;

	for (; *at < l->cap * WAYS; ++*at) {
		s = &l->bucket[*at / WAYS].slot[*at % WAYS];
		if (s->addr_size) {
			unpack(s, b);
			++*at;
			return true;
		}
	}
	return false;
}

size_t live_count(const struct live *l)
{
	return l->n;
}

size_t live_memory(const struct live *l)
{
	return l->cap * sizeof(struct bucket);
}
