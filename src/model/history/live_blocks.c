/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/history/live_blocks.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/wide.h"

#define WAYS	  4u
#define FIRST	  64u /* buckets of a part */
#define LOAD	  74u /* percent; more would need less memory, but soon much more time */
#define HUGE	  (2u << 20)
#define ADDR_MASK ((1ull << 48) - 1)
#define ASIDE	  UINT8_MAX
#define FAR	  0x7ffu
#define STACKS	  (1u << 28)
#define TIME_MAX  ((1ull << 56) - 1) /* ns; two years */

/* A free slot has address 0. */
struct live_slot {
	uint64_t addr : 48, slack : 8; /* usable - size; ASIDE: in live_blocks.aside */
	uint64_t stack_low : 8, stack_high : 20;
	uint64_t site : 11; /* FAR: site and stack are in live_blocks.far */
	uint64_t past : 1;  /* of the first slot: a block went past the bucket */
	uint64_t size : 32; /* the lower 32 bits */
};

/*
 * A cache line.  Blocks are before free slots.  A block is in the first bucket, from its home bucket on,
 * that had room, so all buckets in between are full, and marked as "past".
 */
struct live_bucket {
	struct live_slot slot[WAYS];
};
_Static_assert(sizeof(struct live_bucket) == 64, "a cache line");

struct live_moment {
	uint32_t time_low, ordinal_low;
	uint32_t time_high : 24, ordinal_high : 8;
};

/* The place of a slot. */
struct place {
	struct live_part *part;
	uint64_t bucket;
	unsigned int way; /* WAYS: there is none */
};

static inline uint64_t hash(uint64_t addr)
{
	uint64_t h = (addr >> 4) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93ull;
}

static inline struct live_part *part_of(const struct live_blocks *l, uint64_t h)
{
	return (struct live_part *)&l->part[h / (UINT64_MAX / LIVE_PARTS + 1)];
}

/* Multiply-shift onto [0, cap): any capacity, and monotonic in the hash. */
static inline uint64_t home(const struct live_part *p, uint64_t h)
{
	return wide_high(h * LIVE_PARTS, p->cap);
}

static inline uint64_t next(const struct live_part *p, uint64_t i)
{
	return i + 1 == p->cap ? 0 : i + 1;
}

static inline bool full(const struct live_bucket *b)
{
	return b->slot[WAYS - 1].addr;
}

static inline unsigned int used(const struct live_bucket *b)
{
	return !!b->slot[0].addr + !!b->slot[1].addr + !!b->slot[2].addr + !!b->slot[3].addr;
}

/* Return: the slot of @addr in @b, WAYS if there is none.  Has no branches, since the processor could not
 * predict them. */
static inline unsigned int way_of(const struct live_bucket *b, uint64_t addr)
{
	const struct live_slot *s = b->slot;

	return (unsigned int)__builtin_ctz((unsigned int)(s[0].addr == addr) |
					   (unsigned int)(s[1].addr == addr) << 1 |
					   (unsigned int)(s[2].addr == addr) << 2 |
					   (unsigned int)(s[3].addr == addr) << 3 | 1u << WAYS);
}

/* ------------------------------------------------------------------ memory -- */

static size_t whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Accesses are random: huge pages avoid most TLB misses. */
static void *zeroes(size_t size)
{
	size_t more = size >= HUGE ? HUGE : 0, before;
	char *p =
	    mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (!more)
		return p;
	before = -(uintptr_t)p % HUGE;
	if (before)
		munmap(p, before);
	munmap(p + before + whole_pages(size), HUGE - before);
	(void)madvise(p + before, size, MADV_HUGEPAGE);
	return p + before;
}

static size_t moments_size(uint64_t cap)
{
	return cap * WAYS * sizeof(struct live_moment);
}

static void part_free(struct live_part *p)
{
	if (p->bucket)
		munmap(p->bucket, p->cap * sizeof(*p->bucket));
	if (p->moment)
		munmap(p->moment, moments_size(p->cap));
	*p = (struct live_part){0};
}

static int part_new(struct live_part *p, uint64_t cap, bool without_moments)
{
	*p = (struct live_part){.cap = cap, .bucket = zeroes(cap * sizeof(*p->bucket))};
	if (p->bucket && !without_moments)
		p->moment = zeroes(moments_size(cap));
	if (p->bucket && (p->moment || without_moments))
		return 0;
	part_free(p);
	return -ENOMEM;
}

void live_blocks_free(struct live_blocks *l)
{
	for (unsigned int i = 0; i < LIVE_PARTS; i++)
		part_free(&l->part[i]);
	sites_free(&l->sites);
	live_free(l->aside);
	live_free(l->far);
	*l = (struct live_blocks){0};
}

void live_blocks_expect(struct live_blocks *l, uint64_t n)
{
	/* A hundredth more, since the parts differ. */
	uint64_t each = n / LIVE_PARTS / LOAD * 101 / WAYS + FIRST;
	struct live_part p;

	for (unsigned int i = 0; i < LIVE_PARTS && each > FIRST; i++) {
		if (l->part[i].n || part_new(&p, each, l->without_moments))
			return;
		part_free(&l->part[i]);
		l->part[i] = p;
	}
}

static inline bool past(const struct live_bucket *b)
{
	return b->slot[0].past;
}

static inline void put_slot(struct live_bucket *b, unsigned int way, struct live_slot s)
{
	s.past = b->slot[way].past;
	b->slot[way] = s;
}

/* Moves the block in slot @from of @b to the place @to. */
static void move(struct live_part *to_part, uint64_t to, unsigned int to_way,
		 struct live_part *part, uint64_t from, unsigned int way)
{
	put_slot(&to_part->bucket[to], to_way, part->bucket[from].slot[way]);
	if (part->moment)
		to_part->moment[to * WAYS + to_way] = part->moment[from * WAYS + way];
}

/* Return: the first bucket from @i on that has room, for a block whose home is @i. */
static uint64_t room_from(struct live_part *p, uint64_t i)
{
	for (; full(&p->bucket[i]); i = next(p, i))
		p->bucket[i].slot[0].past = 1;
	return i;
}

static int grow_part(const struct live_blocks *l, struct live_part *p)
{
	struct live_part bigger;

	if (part_new(&bigger, p->cap ? p->cap + p->cap / 4 : FIRST, l->without_moments))
		return -ENOMEM;
	bigger.n = p->n;
	for (uint64_t i = 0; i < p->cap; i++) {
		for (unsigned int w = 0; w < used(&p->bucket[i]); w++) {
			uint64_t k = home(&bigger, hash(p->bucket[i].slot[w].addr));

			k = room_from(&bigger, k);
			move(&bigger, k, used(&bigger.bucket[k]), p, i, w);
		}
	}
	part_free(p);
	*p = bigger;
	return 0;
}

/* ------------------------------------------------------------------ aside -- */

static int put_into(struct live **table, const struct live_block *b)
{
	struct live_block old;

	if (!*table)
		*table = live_new(80);
	return *table ? live_put(*table, b, &old) : -ENOMEM;
}

static int put_aside(struct live_blocks *l, const struct model_block *b)
{
	return put_into(&l->aside,
			&(struct live_block){b->addr, b->size >> 32 << 32 | (b->usable - b->size),
					     b->chain, 0});
}

static int put_far(struct live_blocks *l, const struct model_block *b, uint32_t site)
{
	return put_into(&l->far, &(struct live_block){b->addr, site, b->stack, 0});
}

/* Return: the number of the site; @stack: set to the block's. */
static uint32_t site_of(const struct live_blocks *l, const struct live_slot *s, uint32_t *stack)
{
	struct live_block far = {.size = s->site,
				 .stack = (uint32_t)(s->stack_high << 8 | s->stack_low)};

	if (s->site == FAR)
		live_find(l->far, s->addr, &far);
	*stack = far.stack;
	return (uint32_t)far.size;
}

/* ------------------------------------------------------------------ blocks -- */

/* Return: the place of @addr, way WAYS: it has none.  @p: the part where it is, with @h its hash. */
static inline struct place find_place(struct live_part *p, uint64_t h, uint64_t addr)
{
	struct place at = {p, home(p, h), WAYS};

	if (!p->cap)
		return at;
	for (;; at.bucket = next(p, at.bucket)) {
		at.way = way_of(&p->bucket[at.bucket], addr);
		if (at.way < WAYS || !past(&p->bucket[at.bucket]))
			return at;
	}
}

static void read_block(const struct live_blocks *l, const struct place *at, struct model_block *b)
{
	const struct live_slot *s = &at->part->bucket[at->bucket].slot[at->way];
	struct live_block aside = {.size = s->slack};
	uint32_t stack;
	const struct site *site = sites_at(&l->sites, site_of(l, s, &stack));

	if (s->slack == ASIDE)
		live_find(l->aside, s->addr, &aside);
	*b = (struct model_block){.addr = s->addr,
				  .size = s->size | aside.size >> 32 << 32,
				  .stack = stack,
				  .tid = site->tid,
				  .chain = aside.stack,
				  .hook = site->hook,
				  .process = l->process,
				  .flags = site->flags,
				  .weight = site->weight};
	b->usable = b->size + (uint32_t)aside.size;
	if (at->part->moment) {
		const struct live_moment *m = &at->part->moment[at->bucket * WAYS + at->way];

		b->time_ns = (uint64_t)m->time_high << 32 | m->time_low;
		b->ordinal = (uint64_t)m->ordinal_high << 32 | m->ordinal_low;
	}
}

/* Releases what the block has besides its slot. */
static void let_go(struct live_blocks *l, const struct live_slot *s)
{
	struct live_block gone;
	uint32_t stack;

	sites_drop(&l->sites, site_of(l, s, &stack));
	if (s->slack == ASIDE)
		live_take(l->aside, s->addr, &gone);
	if (s->site == FAR)
		live_take(l->far, s->addr, &gone);
}

static int write_block(struct live_blocks *l, const struct place *at, const struct model_block *b)
{
	bool aside = b->chain || b->usable - b->size >= ASIDE || b->size > UINT32_MAX;
	const struct site site = {
	    .tid = b->tid, .hook = b->hook, .flags = b->flags, .weight = b->weight};
	uint64_t time = b->time_ns < TIME_MAX ? b->time_ns : TIME_MAX;
	uint32_t id;
	bool far;

	if (sites_add(&l->sites, &site, &id))
		return -ENOMEM;
	far = id >= FAR || b->stack >= STACKS;
	if ((aside && put_aside(l, b)) || (far && put_far(l, b, id)))
		return -ENOMEM;
	put_slot(&at->part->bucket[at->bucket], at->way,
		 (struct live_slot){.addr = b->addr & ADDR_MASK,
				    .slack = aside ? ASIDE : (uint8_t)(b->usable - b->size),
				    .size = (uint32_t)b->size,
				    .stack_low = b->stack & 0xff,
				    .stack_high = b->stack >> 8 & 0xfffff,
				    .site = far ? FAR : id & FAR});
	if (at->part->moment)
		at->part->moment[at->bucket * WAYS + at->way] =
		    (struct live_moment){.time_low = (uint32_t)time,
					 .time_high = (uint32_t)(time >> 32) & 0xffffff,
					 .ordinal_low = (uint32_t)b->ordinal,
					 .ordinal_high = (uint8_t)(b->ordinal >> 32)};
	return 0;
}

int live_blocks_put(struct live_blocks *l, const struct model_block *b, struct model_block *old)
{
	uint64_t h = hash(b->addr);
	struct live_part *p = part_of(l, h);
	struct place at;

	old->addr = 0;
	if (!b->addr)
		return 0;
	if (p->n >= p->cap * WAYS * LOAD / 100 && grow_part(l, p))
		return -ENOMEM;
	at = find_place(p, h, b->addr);
	if (at.way < WAYS) {
		read_block(l, &at, old);
		let_go(l, &p->bucket[at.bucket].slot[at.way]);
	} else {
		at.bucket = room_from(p, home(p, h));
		at.way = used(&p->bucket[at.bucket]);
		p->n++;
	}
	return write_block(l, &at, b);
}

/* Return: the way of a block in bucket @at whose home is at or before bucket @hole, so that it went past
 * @hole when that was full, or WAYS. */
static unsigned int strayed(const struct live_part *p, uint64_t hole, uint64_t at)
{
	for (unsigned int way = used(&p->bucket[at]); way--;) {
		uint64_t h = home(p, hash(p->bucket[at].slot[way].addr));

		if (hole < at ? h <= hole || h > at : h <= hole && h > at)
			return way;
	}
	return WAYS;
}

/* Removes slot @way of bucket @i; the last block of the bucket moves to its place. */
static void vacate(struct live_part *p, uint64_t i, unsigned int way)
{
	unsigned int last = used(&p->bucket[i]) - 1;

	move(p, i, way, p, i, last);
	p->bucket[i].slot[last].addr = 0;
}

/* Moves a block that went past the bucket @hole, which now has room, back, and so on for the bucket of that
 * block. */
static void fill_hole(struct live_part *p, uint64_t hole)
{
	for (uint64_t at = hole; past(&p->bucket[at]);) {
		unsigned int way;

		at = next(p, at);
		way = strayed(p, hole, at);
		if (way == WAYS)
			continue;
		move(p, hole, WAYS - 1, p, at, way);
		vacate(p, at, way);
		hole = at;
	}
	p->bucket[hole].slot[0].past = 0;
}

bool live_blocks_take(struct live_blocks *l, uint64_t addr, struct model_block *b)
{
	uint64_t h = hash(addr);
	struct place at = find_place(part_of(l, h), h, addr);

	if (at.way == WAYS || !addr)
		return false;
	read_block(l, &at, b);
	let_go(l, &at.part->bucket[at.bucket].slot[at.way]);
	at.part->n--;
	vacate(at.part, at.bucket, at.way);
	if (past(&at.part->bucket[at.bucket]))
		fill_hole(at.part, at.bucket);
	return true;
}

void live_blocks_prefetch(const struct live_blocks *l, uint64_t addr)
{
	uint64_t h = hash(addr);
	const struct live_part *p = part_of(l, h);
	uint64_t i = home(p, h);

	if (!p->cap)
		return;
	__builtin_prefetch(&p->bucket[i], 1);
	if (p->moment) {
		__builtin_prefetch(&p->moment[i * WAYS], 1);
		__builtin_prefetch(&p->moment[i * WAYS + WAYS - 1], 1);
	}
}

int live_blocks_each(const struct live_blocks *l,
		     int (*each)(void *ctx, const struct model_block *b), void *ctx)
{
	struct model_block b;
	int ret = 0;

	for (unsigned int k = 0; k < LIVE_PARTS; k++) {
		struct place at = {.part = (struct live_part *)&l->part[k]};

		for (; at.bucket < at.part->cap; at.bucket++) {
			for (at.way = 0; !ret && at.way < used(&at.part->bucket[at.bucket]);
			     at.way++) {
				read_block(l, &at, &b);
				ret = each(ctx, &b);
			}
		}
	}
	return ret;
}
