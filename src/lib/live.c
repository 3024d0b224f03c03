/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lib/live.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "lib/wide.h"

#define FIRST	  1024u
#define HUGE	  (8u << 20) /* bytes from which on a table has huge pages and grows in place */
#define HUGE_PAGE ((uintptr_t)2 << 20)
#define RESERVE	  ((size_t)1 << (sizeof(size_t) > 4 ? 36 : 28)) /* address space for it to grow */
#define ADDR_MASK ((1ull << 48) - 1)
#define WAYS	  4u
#define GROWTH	  10u /* in place it grows by 1 / GROWTH: less would move blocks too often */
#define PASSED	  (1ull << 63) /* in the first slot of a bucket: blocks went past it */
#define WEIGHT	  0x7fe0u

struct slot {
	/* Address in the lower 48 bits, above them bits 32..46 of the size, or WEIGHT and the
	 * weight; PASSED. */
	uint64_t addr_size;
	uint32_t size, stack;
};

/*
 * A cache line.  Blocks are before free slots.  A block is in the first bucket, from its home
 * bucket on, that had room.  All buckets in between are full and PASSED.  A bucket can be PASSED although
 * the blocks that went past it are gone.
 */
struct bucket {
	struct slot slot[WAYS];
};

struct live {
	struct bucket *bucket;
	uint64_t cap, n; /* buckets, blocks */
	size_t reserved; /* bytes of address space from bucket on */
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

static inline bool passed(const struct bucket *b)
{
	return b->slot[0].addr_size & PASSED;
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

/* Sets a slot, but not whether its bucket is PASSED. */
static inline void set_slot(struct slot *to, const struct slot *s)
{
	to->addr_size = (to->addr_size & PASSED) | (s->addr_size & ~PASSED);
	to->size = s->size;
	to->stack = s->stack;
}

/* Makes the first @cap buckets of the reserved address space accessible.  Accesses to the table are
 * random: huge pages avoid most TLB misses. */
static int make_accessible(const struct live *l, uint64_t cap)
{
	size_t size = cap * sizeof(struct bucket);
	uintptr_t start = (uintptr_t)l->bucket,
		  end = (start + size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);

	if (cap > l->reserved / sizeof(struct bucket))
		return -ENOMEM;
	if (size >= HUGE && end - start < l->reserved)
		size = end - start;
	if (mprotect(l->bucket, size, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	if (size >= HUGE)
		(void)madvise(l->bucket, size, MADV_HUGEPAGE);
	return 0;
}

static void buckets_free(struct live *l)
{
	if (l->bucket)
		munmap(l->bucket, l->reserved);
}

/* Sets l->bucket to l->cap empty buckets, with @reserve bytes of address space. */
static int buckets_reserve(struct live *l, size_t reserve)
{
	void *p =
	    mmap(NULL, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	l->bucket = p;
	l->reserved = reserve;
	if (!make_accessible(l, l->cap))
		return 0;
	buckets_free(l);
	return -ENOMEM;
}

static int buckets_new(struct live *l)
{
	size_t size = l->cap * sizeof(struct bucket);

	if (size >= HUGE && size < RESERVE && !buckets_reserve(l, RESERVE))
		return 0;
	return buckets_reserve(l, size);
}

struct live *live_new(unsigned int percent)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->cap = FIRST;
	l->percent = percent;
	if (buckets_new(l)) {
		free(l);
		return NULL;
	}
	return l;
}

void live_free(struct live *l)
{
	if (l)
		buckets_free(l);
	free(l);
}

static void unpack(const struct slot *s, struct live_block *b)
{
	uint64_t high = (s->addr_size & ~PASSED) >> 48;

	b->addr = s->addr_size & ADDR_MASK;
	b->weight = high > WEIGHT ? (uint8_t)(high - WEIGHT) : 0;
	b->size = s->size | (b->weight ? 0 : high << 32);
	b->stack = s->stack;
}

static uint64_t pack(const struct live_block *b, uint64_t size)
{
	return b->addr | (b->weight ? WEIGHT + b->weight : size >> 32) << 48;
}

/* Puts @s into the first bucket with room from bucket @i on.  Return: that bucket. */
static inline uint64_t place(const struct live *l, const struct slot *s, uint64_t i)
{
	for (; full(&l->bucket[i]); i = next(l, i))
		l->bucket[i].slot[0].addr_size |= PASSED;
	set_slot(&l->bucket[i].slot[used(&l->bucket[i])], s);
	return i;
}

/* Takes the blocks out of bucket @i and places them anew.  Return: 0, or the last bucket that has one
 * of them which went past buckets before @i. */
static inline uint64_t place_again(const struct live *l, uint64_t i)
{
	const struct bucket b = l->bucket[i];
	uint64_t last = 0;

	l->bucket[i] = (struct bucket){0};
	for (unsigned int w = 0; w < used(&b); w++) {
		uint64_t h = home(l, b.slot[w].addr_size & ADDR_MASK), at = place(l, &b.slot[w], h);

		if ((h < i || at < h) && at > last)
			last = at;
	}
	return last;
}

/*
 * Enlarges the table in place.  A block's home only moves forward, so from the last bucket to the
 * first, blocks move to buckets that are final.  The exceptions are few: blocks far from their home
 * near the table's beginning, and blocks that continue there from its end.  They and what may have
 * gone past them are placed anew, from the beginning of a row of full buckets on.
 */
static int spread(struct live *l)
{
	uint64_t bigger = l->cap + l->cap / GROWTH, last = 0, first, at, n;

	if (make_accessible(l, bigger))
		return -ENOMEM;
	at = l->cap;
	l->cap = bigger;
	while (at--) {
		n = place_again(l, at);
		last = n > last ? n : last;
	}
	for (first = bigger; full(&l->bucket[first - 1]);)
		first--;
	n = bigger - first + last;
	at = first == bigger ? 0 : first;
	for (uint64_t i = 0; i < bigger; i++, at = next(l, at)) {
		bool was_full = full(&l->bucket[at]);

		place_again(l, at);
		if (i >= n && !was_full)
			break;
	}
	return 0;
}

/* Moves the blocks to a larger table. */
static int move(struct live *l)
{
	struct live bigger = *l;

	bigger.cap += l->cap / 4;
	if (buckets_new(&bigger))
		return -ENOMEM;
	for (uint64_t i = 0; i < l->cap; i++) {
		const struct bucket *b = &l->bucket[i];

		for (unsigned int w = 0; w < used(b); w++)
			place(&bigger, &b->slot[w],
			      home(&bigger, b->slot[w].addr_size & ADDR_MASK));
	}
	buckets_free(l);
	*l = bigger;
	return 0;
}

static int grow_buckets(struct live *l)
{
	return spread(l) ? move(l) : 0;
}

/* Return: the slot of @addr, or NULL.  @at: set to its bucket, or else to the last one that can have it. */
static inline struct slot *find_slot(const struct live *l, uint64_t addr, uint64_t *at)
{
	for (uint64_t i = home(l, addr);; i = next(l, i)) {
		struct bucket *b = &l->bucket[i];
		unsigned int way = way_of(b, addr);

		*at = i;
		if (way < WAYS)
			return b->slot[way].addr_size ? &b->slot[way] : NULL;
		if (!passed(b))
			return NULL;
	}
}

int live_put(struct live *l, const struct live_block *b, struct live_block *old)
{
	uint64_t at, size = b->size > LIVE_MAX_SIZE ? LIVE_MAX_SIZE : b->size;
	struct slot *s, new = {pack(b, size), (uint32_t)size, b->stack};

	old->addr = 0;
	if (l->n >= l->cap * WAYS / 100 * l->percent && grow_buckets(l))
		return -ENOMEM;
	s = find_slot(l, b->addr, &at);
	if (s) {
		unpack(s, old);
		set_slot(s, &new);
	} else {
		place(l, &new, at);
		l->n++;
	}
	return 0;
}

bool live_find(const struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t at;
	const struct slot *s = find_slot(l, addr, &at);

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

	set_slot(s, last);
	last->addr_size = 0;
}

/* Fills the free slot of bucket @hole, which is PASSED, with a block that went past it, and so on with the
 * free slot that this leaves. */
static void pull_back(struct live *l, uint64_t hole)
{
	for (uint64_t at = next(l, hole);; at = next(l, at)) {
		bool more = passed(&l->bucket[at]);
		struct slot *s = strayed(l, hole, at);

		if (s) {
			set_slot(&l->bucket[hole].slot[WAYS - 1], s);
			vacate(l, at, s);
			hole = at;
		}
		if (!more)
			break;
	}
	l->bucket[hole].slot[0].addr_size &= ~PASSED;
}

bool live_take(struct live *l, uint64_t addr, struct live_block *b)
{
	uint64_t at;
	struct slot *s = find_slot(l, addr, &at);

	if (!s)
		return false;
	unpack(s, b);
	l->n--;
	vacate(l, at, s);
	if (passed(&l->bucket[at]))
		pull_back(l, at);
	return true;
}

void live_prefetch(const struct live *l, uint64_t addr)
{
	const struct bucket *b = &l->bucket[home(l, addr)];

	__builtin_prefetch(b, 1);
	__builtin_prefetch(b + 1, 1); /* cheaper than finding out whether the block can be there */
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
