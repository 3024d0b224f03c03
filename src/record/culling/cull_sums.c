/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/culling/cull_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/vec.h"

#define FIRST_SUMS 1024u
#define WAITING	   8u /* blocks that are added later, so that cache misses overlap; a power of two */

struct sum {
	struct cull_key key;
	uint64_t first_ns, last_ns, usable;
	uint32_t lifetime[LIFETIME_CLASSES];
};

/* Finds a sum by the hash of its key. */
struct bucket {
	uint32_t hash, sum; /* sum: its index + 1; 0: none */
};

/* A block that is to be added to its sum. */
struct adding {
	struct cull_key key;
	uint64_t born_ns, usable, lifetime_ns;
	uint32_t hash;
};

struct cull_sums {
	VEC(struct sum) sums;
	struct bucket *bucket;
	uint32_t buckets; /* power of two */
	struct adding waiting[WAITING];
	uint64_t came, added; /* blocks */
	struct cull_calls calls;
};

struct cull_sums *cull_sums_new(void)
{
	struct cull_sums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->buckets = FIRST_SUMS;
	s->bucket = calloc(s->buckets, sizeof(*s->bucket));
	if (s->bucket)
		return s;
	free(s);
	return NULL;
}

void cull_sums_free(struct cull_sums *s)
{
	if (!s)
		return;
	vec_free(&s->sums);
	free(s->bucket);
	free(s);
}

static uint32_t hash_of(const struct cull_key *k)
{
	uint64_t h = ((uint64_t)k->stack << 32 ^ k->size) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32 ^ k->tid ^ (uint64_t)k->free_tid << 32;
	h = h * 0xd6e8feb86659fd93ull ^ k->slice;
	h ^= h >> 32 ^ k->hook ^ (uint64_t)k->free_hook << 16 ^ (uint64_t)k->flags << 32 ^
	     (uint64_t)k->weight << 48;
	return (uint32_t)(h * 0xd6e8feb86659fd93ull >> 32);
}

static struct bucket *first_bucket(const struct cull_sums *s, uint32_t hash)
{
	return &s->bucket[hash & (s->buckets - 1)];
}

static struct bucket *bucket_of(const struct cull_sums *s, const struct cull_key *key,
				uint32_t hash)
{
	for (uint32_t i = hash;; i++) {
		struct bucket *b = first_bucket(s, i);

		if (!b->sum ||
		    (b->hash == hash && !memcmp(&s->sums.at[b->sum - 1].key, key, sizeof(*key))))
			return b;
	}
}

static int grow_buckets(struct cull_sums *s)
{
	struct bucket *more = calloc(s->buckets * 2ull, sizeof(*more));

	if (!more)
		return -ENOMEM;
	free(s->bucket);
	s->bucket = more;
	s->buckets *= 2;
	for (size_t i = 0; i < s->sums.n; i++) {
		const struct cull_key *key = &s->sums.at[i].key;
		uint32_t hash = hash_of(key);

		*bucket_of(s, key, hash) = (struct bucket){hash, (uint32_t)i + 1};
	}
	return 0;
}

static int new_sum(struct cull_sums *s, const struct adding *a, struct bucket *b)
{
	struct sum fresh = {.key = a->key, .first_ns = a->born_ns, .last_ns = a->born_ns};

	if (vec_push(&s->sums, fresh))
		return -ENOMEM;
	*b = (struct bucket){a->hash, (uint32_t)s->sums.n};
	return s->sums.n * 2 > s->buckets ? grow_buckets(s) : 0;
}

static void count_calls(struct cull_calls *n, const struct cull_key *key)
{
	n->allocations += !(key->flags & MP_CULLED_CONTINUED);
	if (key->flags & MP_CULLED_RESIZED)
		n->reallocs += 2; /* its beginning and its end */
	else
		n->frees++;
}

static int add_block(struct cull_sums *s, const struct adding *a)
{
	struct bucket *b = bucket_of(s, &a->key, a->hash);
	uint32_t at = b->sum, *of_class;
	struct sum *sum;

	if (!at) {
		if (new_sum(s, a, b))
			return -ENOMEM;
		at = (uint32_t)s->sums.n;
	}
	sum = &s->sums.at[at - 1];
	if (sum->first_ns > a->born_ns)
		sum->first_ns = a->born_ns;
	if (sum->last_ns < a->born_ns)
		sum->last_ns = a->born_ns;
	of_class = &sum->lifetime[lifetime_class(a->lifetime_ns)];
	/* The file has no larger numbers; a sum is written long before. */
	if (*of_class == UINT32_MAX)
		return -EOVERFLOW;
	++*of_class;
	sum->usable += a->usable;
	return 0;
}

/* Prefetches the sum of @a, whose bucket was prefetched before. */
static void prefetch_sum(const struct cull_sums *s, const struct adding *a)
{
	const struct bucket *b = first_bucket(s, a->hash);
	const struct sum *sum;

	if (!b->sum)
		return;
	sum = &s->sums.at[b->sum - 1];
	__builtin_prefetch(sum, 1);
	__builtin_prefetch(&sum->lifetime[lifetime_class(a->lifetime_ns)], 1);
}

/* Adds the blocks that wait, but for the latest @but.  Return: 0, or the first negative errno. */
static int add_waiting(struct cull_sums *s, uint64_t but)
{
	int first = 0;

	while (s->came - s->added > but) {
		int ret = add_block(s, &s->waiting[s->added++ % WAITING]);

		first = first ? first : ret;
	}
	return first;
}

int cull_sums_add(struct cull_sums *s, const struct cull_key *key, uint64_t born_ns,
		  uint64_t usable, uint64_t lifetime_ns)
{
	struct adding *a = &s->waiting[s->came % WAITING];
	int ret = add_waiting(s, WAITING - 1);

	a->key = *key;
	a->born_ns = born_ns;
	a->usable = usable;
	a->lifetime_ns = lifetime_ns;
	a->hash = hash_of(key);
	__builtin_prefetch(first_bucket(s, a->hash), 1);
	s->came++;
	count_calls(&s->calls, key);
	if (s->came - s->added > WAITING / 2)
		prefetch_sum(s, &s->waiting[(s->came - WAITING / 2 - 1) % WAITING]);
	return ret;
}

uint64_t cull_sums_count(const struct cull_sums *s)
{
	return s->sums.n;
}

struct cull_calls cull_sums_calls(const struct cull_sums *s)
{
	return s->calls;
}

#define compare(x, y) ((x) < (y) ? -1 : (x) > (y))

/* Neighbours in the file differ in little. */
static int by_key(const void *a, const void *b)
{
	const struct cull_key *x = &((const struct sum *)a)->key,
			      *y = &((const struct sum *)b)->key;
	int d = compare(x->tid, y->tid);

	d = d ? d : compare(x->stack, y->stack);
	d = d ? d : compare(x->size, y->size);
	d = d ? d : compare(x->free_hook, y->free_hook);
	d = d ? d : compare(x->free_tid, y->free_tid);
	d = d ? d : compare(x->flags, y->flags);
	return d ? d : compare(x->weight, y->weight);
}

static struct mp_culled culled_of(const struct sum *s)
{
	struct mp_culled c = {.size = s->key.size,
			      .stack = s->key.stack,
			      .tid = s->key.tid,
			      .free_tid = s->key.free_tid,
			      .hook = s->key.hook,
			      .free_hook = s->key.free_hook,
			      .flags = (uint8_t)s->key.flags,
			      .weight = (uint8_t)s->key.weight,
			      .first_ns = s->first_ns,
			      .last_ns = s->last_ns,
			      .usable = s->usable};

	for (uint32_t i = 0; i < LIFETIME_CLASSES; i++)
		c.blocks += c.lifetime[i] = s->lifetime[i];
	return c;
}

int cull_sums_put(struct cull_sums *s, struct mpf_writer *file)
{
	int added = add_waiting(s, 0), ret = 0;

	vec_sort(&s->sums, by_key);
	vec_for_each (&s->sums, sum) {
		struct mp_culled c = culled_of(sum);

		ret = mpf_put_culled(file, &c);
		if (ret)
			break;
	}
	s->sums.n = 0;
	s->calls = (struct cull_calls){0};
	memset(s->bucket, 0, s->buckets * sizeof(*s->bucket));
	return added ? added : ret;
}
