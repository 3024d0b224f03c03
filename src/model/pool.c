/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/pool.h"

#include <sys/mman.h>

#define PART	  (1u << 20) /* entries allocated at a time */
#define PART_SIZE (PART * sizeof(struct pooled))

#define BITS_40 ((1ull << 40) - 1)
#define BITS_56 ((1ull << 56) - 1) /* ns; two years */
#define ASIDE	UINT8_MAX

struct __attribute__((packed)) pooled {
	uint32_t time_low, ordinal_low;
	uint32_t time_high : 24, ordinal_high : 8;
	uint32_t site; /* for an unused entry: the next unused one, + 1 */
	uint8_t slack; /* ASIDE: slack and chain are in pool.aside */
};

static struct pooled *entry(const struct pool *p, uint32_t index)
{
	return &p->part.at[index / PART][index % PART];
}

/* Accesses are random: huge pages avoid most TLB misses. */
static int add_part(struct pool *p)
{
	void *part =
	    mmap(NULL, PART_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (part == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(part, PART_SIZE, MADV_HUGEPAGE);
	if (!vec_push(&p->part, part))
		return 0;
	munmap(part, PART_SIZE);
	return -ENOMEM;
}

void pool_free(struct pool *p)
{
	vec_for_each (&p->part, part)
		munmap(*part, PART_SIZE);
	vec_free(&p->part);
	sites_free(&p->sites);
	live_free(p->aside);
	*p = (struct pool){0};
}

/* A live table is used to map an index to slack and chain. */
static uint64_t aside_key(uint32_t index)
{
	return ((uint64_t)index + 1) << 4;
}

static int put_aside(struct pool *p, const struct model_block *b, uint32_t index)
{
	struct live_block lb = {aside_key(index), b->usable - b->size, b->chain, 0}, old;

	if (!p->aside)
		p->aside = live_new(80);
	return p->aside ? live_put(p->aside, &lb, &old) : -ENOMEM;
}

static int new_index(struct pool *p, uint32_t *index)
{
	if (p->unused) {
		*index = p->unused - 1;
		p->unused = entry(p, *index)->site;
		return 0;
	}
	if (p->used / PART == p->part.n && add_part(p))
		return -ENOMEM;
	*index = p->used++;
	return 0;
}

int pool_add(struct pool *p, const struct model_block *b, uint32_t *index)
{
	const struct site site = {.stack = b->stack,
				  .tid = b->tid,
				  .hook = b->hook,
				  .flags = b->flags,
				  .weight = b->weight};
	bool aside = b->chain || b->usable - b->size >= ASIDE;
	uint64_t time = b->time_ns < BITS_56 ? b->time_ns : BITS_56;
	struct pooled *e;
	uint32_t id;

	if (sites_add(&p->sites, &site, &id) || new_index(p, index))
		return -ENOMEM;
	e = entry(p, *index);
	*e = (struct pooled){.time_low = (uint32_t)time,
			     .time_high = (uint32_t)(time >> 32) & 0xffffff,
			     .ordinal_low = (uint32_t)b->ordinal,
			     .ordinal_high = (uint8_t)((b->ordinal & BITS_40) >> 32),
			     .site = id,
			     .slack = aside ? ASIDE : (uint8_t)(b->usable - b->size)};
	return aside ? put_aside(p, b, *index) : 0;
}

struct model_block pool_block(const struct pool *p, const struct live_block *lb, uint16_t process)
{
	const struct pooled *e = entry(p, lb->stack);
	const struct site *site = sites_at(&p->sites, e->site);
	struct live_block aside = {.size = e->slack};

	if (e->slack == ASIDE)
		live_find(p->aside, aside_key(lb->stack), &aside);
	return (struct model_block){.addr = lb->addr,
				    .size = lb->size,
				    .usable = lb->size + aside.size,
				    .time_ns = (uint64_t)e->time_high << 32 | e->time_low,
				    .ordinal = (uint64_t)e->ordinal_high << 32 | e->ordinal_low,
				    .stack = site->stack,
				    .tid = site->tid,
				    .chain = aside.stack,
				    .hook = site->hook,
				    .process = process,
				    .flags = site->flags,
				    .weight = site->weight};
}

struct model_block pool_take(struct pool *p, const struct live_block *lb, uint16_t process)
{
	struct model_block b = pool_block(p, lb, process);
	struct pooled *e = entry(p, lb->stack);
	struct live_block gone;

	if (e->slack == ASIDE)
		live_take(p->aside, aside_key(lb->stack), &gone);
	sites_drop(&p->sites, e->site);
	e->site = p->unused;
	p->unused = lb->stack + 1;
	return b;
}

uint32_t pool_stack(const struct pool *p, uint32_t index)
{
	uint32_t id = entry(p, index)->site;

	/* If the entry was returned since, this is not a site id. */
	return id < p->sites.at.n ? sites_at(&p->sites, id)->stack : 0;
}

void pool_prefetch(const struct pool *p, uint32_t index)
{
	__builtin_prefetch(entry(p, index), 1);
}
