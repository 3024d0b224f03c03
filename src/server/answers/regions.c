/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/regions.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include "lib/by_number.h"
#include "lib/vec.h"
#include "model/model.h"
#include "model/names/allocator.h"
#include "server/answers/ending.h"

#define SLACK 65536u

struct range_of {
	uint64_t start, end; /* start comes first: by_number() */
};

struct regions {
	struct answer *a;
	VEC(struct range_of) at; /* sorted and disjoint up to .joined */
	size_t joined;
	struct range_of heap; /* of glibc's main arena; empty: there is none */
	uint64_t word;	      /* bytes */
};

/* Joins ranges that touch.  Chunks of glibc are next to each other, so few ranges remain. */
static void join_regions(struct regions *r)
{
	size_t n = 0;

	vec_sort(&r->at, by_number);
	vec_for_each (&r->at, range) {
		if (n && range->start <= r->at.at[n - 1].end) {
			if (range->end > r->at.at[n - 1].end)
				r->at.at[n - 1].end = range->end;
		} else {
			r->at.at[n++] = *range;
		}
	}
	r->at.n = r->joined = n;
}

/* A block with the header that its allocator put before it. */
static struct range_of range_of(const struct regions *r, const struct model_block *b,
				enum allocator kind)
{
	uint64_t words = kind == ALLOCATOR_MMAPPED					 ? 2
			 : kind == ALLOCATOR_MAIN_ARENA || kind == ALLOCATOR_OTHER_ARENA ? 1
											 : 0;
	uint64_t header = words * r->word;

	return (struct range_of){b->addr > header ? b->addr - header : 0, b->addr + b->usable};
}

static void extend_heap(struct range_of *heap, const struct range_of *range)
{
	if (!heap->end || range->start < heap->start)
		heap->start = range->start;
	if (range->end > heap->end)
		heap->end = range->end;
}

static int on_block(void *ctx, const struct model_block *b)
{
	struct regions *r = ctx;
	enum allocator kind = model_allocator(r->a->m, b);
	struct range_of range = range_of(r, b, kind);

	if (kind == ALLOCATOR_MAIN_ARENA)
		extend_heap(&r->heap, &range);
	/* The next block is often a chunk that was in use before. */
	if (r->at.n && range.start >= r->at.at[r->at.n - 1].start &&
	    range.end <= r->at.at[r->at.n - 1].end)
		return 0;
	if (vec_push(&r->at, range))
		return -ENOMEM;
	if (r->at.n >= 2 * r->joined + SLACK)
		join_regions(r);
	return 0;
}

static void write_bound(yajl_gen g, const char *key, uint64_t v)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);
	json_text(g, key, digits);
}

static void write_number(yajl_gen g, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	yajl_gen_number(g, digits, (size_t)n);
}

static int write_regions(const struct regions *r, struct mp_err *err)
{
	yajl_gen g;
	int ret = answer_begin(r->a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_number(g, "main_heap_start", r->heap.start);
	json_number(g, "main_heap_end", r->heap.end);
	write_bound(g, "main_heap_start_s", r->heap.start);
	write_bound(g, "main_heap_end_s", r->heap.end);
	json_name(g, "regions");
	yajl_gen_array_open(g);
	vec_for_each (&r->at, range) {
		yajl_gen_array_open(g);
		write_number(g, range->start);
		write_number(g, range->end);
		yajl_gen_array_close(g);
	}
	yajl_gen_array_close(g);
	answer_culled(r->a, g);
	yajl_gen_map_close(g);
	return answer_end(r->a, g, 0, err);
}

int answer_regions(struct answer *a, struct mp_err *err)
{
	struct regions r = {.a = a, .word = a->m->info.machine == EM_ARM ? 4 : 8};
	struct history_sink sink = {.allocated = on_block, .faulted = on_block, .ctx = &r};
	int ret;

	if (a->m->info.processes)
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "regions: the recording is of several processes, each of which has "
			       "addresses of its own");
	ret = model_replay(a->m, &sink, NULL, err);
	if (!ret) {
		join_regions(&r);
		ret = write_regions(&r, err);
	}
	vec_free(&r.at);
	return ret;
}
