/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report/pool.h"

#include <sys/mman.h>

#define PART	  (1u << 20) /* entries that are allocated together */
#define PART_SIZE (PART * sizeof(struct pooled))

struct pooled {
	uint64_t time_ns;
	uint64_t ordinal : 40, hook : 16, flags : 8;
	uint32_t stack, tid, slack;
	uint32_t chain; /* of an unused one: the next unused, + 1 */
};

static struct pooled *entry(const struct pool *p, uint32_t index)
{
	return &p->part.at[index / PART][index % PART];
}

/* Looked up at random: large pages spare most of the address translations. */
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
	p->used = p->unused = 0;
}

int pool_add(struct pool *p, const struct model_block *b, uint32_t *index)
{
	if (p->unused) {
		*index = p->unused - 1;
		p->unused = entry(p, *index)->chain;
	} else {
		if (p->used / PART == p->part.n && add_part(p))
			return -ENOMEM;
		*index = p->used++;
	}
	*entry(p, *index) = (struct pooled){.time_ns = b->time_ns,
					    .ordinal = b->ordinal & ((1ull << 40) - 1),
					    .hook = b->hook,
					    .flags = b->flags,
					    .stack = b->stack,
					    .tid = b->tid,
					    .slack = (uint32_t)(b->usable - b->size),
					    .chain = b->chain};
	return 0;
}

struct model_block pool_block(const struct pool *p, const struct live_block *lb, uint16_t process)
{
	const struct pooled *e = entry(p, lb->stack);

	return (struct model_block){.addr = lb->addr,
				    .size = lb->size,
				    .usable = lb->size + e->slack,
				    .time_ns = e->time_ns,
				    .ordinal = e->ordinal,
				    .stack = e->stack,
				    .tid = e->tid,
				    .chain = e->chain,
				    .hook = e->hook,
				    .process = process,
				    .flags = e->flags};
}

struct model_block pool_take(struct pool *p, const struct live_block *lb, uint16_t process)
{
	struct model_block b = pool_block(p, lb, process);

	entry(p, lb->stack)->chain = p->unused;
	p->unused = lb->stack + 1;
	return b;
}

uint32_t pool_stack(const struct pool *p, uint32_t index)
{
	return entry(p, index)->stack;
}

void pool_prefetch(const struct pool *p, uint32_t index)
{
	__builtin_prefetch(entry(p, index), 1);
}
