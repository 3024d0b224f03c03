/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/cull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/live.h"
#include "lib/vec.h"

#define NONE	   UINT32_MAX
#define FIRST_SUMS 1024u

struct node {
	struct mp_event ev;
	uint32_t prev, next; /* in order of arrival; next of an unused node: the next unused one */
	bool indexed;	     /* an allocation that is in cull.index */
};

struct last_alloc {
	uint32_t tid;
	/* The thread's latest block, while it can still be temporary (freed before the next
	 * allocation) */
	uint64_t addr;
};

struct cull {
	uint64_t age_ns;
	struct mpf_writer *file;
	VEC(struct node) nodes;
	uint32_t oldest, newest, unused;
	struct live *index; /* address -> node of its allocation, in live_block.stack */
	VEC(struct last_alloc) last;
	size_t last_used;
	VEC(struct mp_culled) sums;
	uint32_t *bucket;		 /* hash of a sum's key -> its index + 1 */
	uint32_t buckets;		 /* power of two */
	uint64_t waiting[UINT8_MAX + 1]; /* by kind */
};

struct cull *cull_new(uint64_t age_ns, struct mpf_writer *file)
{
	struct cull *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->age_ns = age_ns;
	c->file = file;
	c->oldest = c->newest = c->unused = NONE;
	c->index = live_new(80);
	c->buckets = FIRST_SUMS;
	c->bucket = calloc(c->buckets, sizeof(*c->bucket));
	if (c->index && c->bucket)
		return c;
	cull_free(c);
	return NULL;
}

void cull_set_file(struct cull *c, struct mpf_writer *file)
{
	c->file = file;
}

void cull_free(struct cull *c)
{
	if (!c)
		return;
	vec_free(&c->nodes);
	vec_free(&c->last);
	vec_free(&c->sums);
	live_free(c->index);
	free(c->bucket);
	free(c);
}

/* -------------------------------------------------------------------------------- waiting -- */

static int append(struct cull *c, const struct mp_event *ev, uint32_t *at)
{
	struct node fresh = {.ev = *ev, .prev = c->newest, .next = NONE};

	if (c->unused != NONE) {
		*at = c->unused;
		c->unused = c->nodes.at[*at].next;
		c->nodes.at[*at] = fresh;
	} else {
		*at = (uint32_t)c->nodes.n;
		if (*at == NONE || vec_push(&c->nodes, fresh))
			return -ENOMEM;
	}
	if (c->newest != NONE)
		c->nodes.at[c->newest].next = *at;
	else
		c->oldest = *at;
	c->newest = *at;
	c->waiting[ev->kind]++;
	return 0;
}

static void take_out(struct cull *c, uint32_t i)
{
	struct node *n = &c->nodes.at[i];

	c->waiting[n->ev.kind]--;
	if (n->prev != NONE)
		c->nodes.at[n->prev].next = n->next;
	else
		c->oldest = n->next;
	if (n->next != NONE)
		c->nodes.at[n->next].prev = n->prev;
	else
		c->newest = n->prev;
	n->next = c->unused;
	c->unused = i;
}

/* Removes the waiting allocation at @addr from the index.  Return: its node, or NONE. */
static uint32_t take_index(struct cull *c, uint64_t addr)
{
	struct live_block b;

	if (!live_take(c->index, addr, &b))
		return NONE;
	c->nodes.at[b.stack].indexed = false;
	return b.stack;
}

static int put_index(struct cull *c, uint64_t addr, uint32_t node)
{
	struct live_block b = {.addr = addr, .stack = node}, old;

	if (live_put(c->index, &b, &old))
		return -ENOMEM;
	c->nodes.at[node].indexed = true;
	return 0;
}

static int write_oldest(struct cull *c)
{
	struct node *n = &c->nodes.at[c->oldest];
	int ret = mpf_put_event(c->file, &n->ev);

	if (n->indexed)
		take_index(c, n->ev.addr);
	take_out(c, c->oldest);
	return ret;
}

uint64_t cull_waiting(const struct cull *c, uint8_t kind)
{
	return c->waiting[kind];
}

int cull_advance(struct cull *c, uint64_t now_ns)
{
	while (c->oldest != NONE &&
	       (now_ns == UINT64_MAX || c->nodes.at[c->oldest].ev.time_ns + c->age_ns <= now_ns)) {
		int ret = write_oldest(c);

		if (ret)
			return ret;
	}
	return 0;
}

/* -------------------------------------------------------------------------------- sums -- */

static uint32_t *bucket_of(struct cull *c, const struct mp_culled *key)
{
	uint64_t h = key->stack * 0x9e3779b97f4a7c15ull;

	h = (h ^ key->tid ^ (uint64_t)key->free_tid << 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32 ^ key->hook ^ (uint32_t)key->free_hook << 16) * 0xd6e8feb86659fd93ull;
	for (uint64_t i = h >> 32;; i++) {
		uint32_t *b = &c->bucket[i & (c->buckets - 1)];
		const struct mp_culled *s = *b ? &c->sums.at[*b - 1] : NULL;

		if (!s || (s->stack == key->stack && s->tid == key->tid && s->hook == key->hook &&
			   s->free_tid == key->free_tid && s->free_hook == key->free_hook))
			return b;
	}
}

static int grow_buckets(struct cull *c)
{
	uint32_t *more = calloc(c->buckets * 2ull, sizeof(*more));

	if (!more)
		return -ENOMEM;
	free(c->bucket);
	c->bucket = more;
	c->buckets *= 2;
	for (size_t i = 0; i < c->sums.n; i++)
		*bucket_of(c, &c->sums.at[i]) = (uint32_t)i + 1;
	return 0;
}

static int add_sum(struct cull *c, const struct mp_event *born, const struct mp_event *freed,
		   bool temporary)
{
	struct mp_culled key = {.stack = born->stack,
				.tid = born->tid,
				.hook = born->hook,
				.free_tid = freed->tid,
				.free_hook = freed->hook},
			 *s;
	uint32_t *b = bucket_of(c, &key);

	if (!*b) {
		if (vec_push(&c->sums, key))
			return -ENOMEM;
		*b = (uint32_t)c->sums.n;
	}
	s = &c->sums.at[*b - 1];
	s->time_ns = freed->time_ns;
	s->blocks += 1ull << born->weight;
	s->bytes += born->size << born->weight;
	s->usable += born->usable << born->weight;
	s->temporary += (uint64_t)temporary << born->weight;
	s->temporary_bytes += temporary ? born->size << born->weight : 0;
	return c->sums.n * 2 > c->buckets ? grow_buckets(c) : 0;
}

int cull_put_sums(struct cull *c)
{
	int ret = 0;

	vec_for_each (&c->sums, s) {
		ret = mpf_put_culled(c->file, s);
		if (ret)
			break;
	}
	c->sums.n = 0;
	memset(c->bucket, 0, c->buckets * sizeof(*c->bucket));
	return ret;
}

/* -------------------------------------------------------------------------------- events -- */

static struct last_alloc *last_of(struct cull *c, uint32_t tid)
{
	struct last_alloc fresh = {.tid = tid};

	if (c->last_used < c->last.n && c->last.at[c->last_used].tid == tid)
		return &c->last.at[c->last_used];
	for (c->last_used = 0; c->last_used < c->last.n; c->last_used++) {
		if (c->last.at[c->last_used].tid == tid)
			return &c->last.at[c->last_used];
	}
	return vec_push(&c->last, fresh) ? NULL : &c->last.at[c->last_used];
}

static int put_alloc(struct cull *c, const struct mp_event *ev, bool keep, struct last_alloc *last)
{
	uint32_t node;
	int ret = append(c, ev, &node);

	last->addr = ev->addr;
	take_index(c, ev->addr);
	return ret || keep ? ret : put_index(c, ev->addr, node);
}

/* Appends an event that ends the block @ended.  Events between its allocation and this one can be
 * culled, so a reader could take the block for temporary: if it was not, the event is flagged. */
static int put_ending(struct cull *c, const struct mp_event *ev, uint64_t ended, bool temporary)
{
	struct mp_event said = *ev;
	uint32_t node;

	if (ended && !temporary)
		said.flags |= EV_F_NOT_TEMPORARY;
	return append(c, &said, &node);
}

static int put_free(struct cull *c, const struct mp_event *ev, struct last_alloc *last)
{
	uint32_t node = take_index(c, ev->addr);
	bool temporary = last->addr == ev->addr && !(ev->flags & EV_F_NOT_TEMPORARY);
	int ret;

	if (temporary)
		last->addr = 0;
	if (node == NONE)
		return put_ending(c, ev, ev->addr, temporary);
	ret =
	    add_sum(c, &c->nodes.at[node].ev, ev, temporary && c->nodes.at[node].ev.tid == ev->tid);
	take_out(c, node);
	return ret;
}

static int put_realloc_end(struct cull *c, const struct mp_event *ev, struct last_alloc *last)
{
	bool temporary = last->addr == ev->old_addr && !(ev->flags & EV_F_NOT_TEMPORARY);

	if (ev->addr || (temporary && ev->flags & EV_F_FREED))
		last->addr = ev->addr;
	return put_ending(c, ev, ev->old_addr, temporary);
}

int cull_put(struct cull *c, const struct mp_event *ev, bool keep)
{
	struct last_alloc *last = last_of(c, ev->tid);
	uint32_t node;

	if (!last)
		return -ENOMEM;
	switch (ev->kind) {
	case EV_ALLOC:
		return put_alloc(c, ev, keep, last);
	case EV_FREE:
		return put_free(c, ev, last);
	case EV_REALLOC_END:
		return put_realloc_end(c, ev, last);
	case EV_REALLOC_BEGIN:
		take_index(c, ev->addr);
		return append(c, ev, &node);
	default:
		return append(c, ev, &node);
	}
}
