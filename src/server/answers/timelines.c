/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/timelines.h"

#include <errno.h>
#include <stdlib.h>
#include "formats/event.h"
#include "model/model.h"
#include "model/sums/weight.h"
#include "server/answers/ending.h"

#define BUCKETS	    1000u
#define LEAST_NS    1000u
#define MILLISECOND 1000000u

/* A section of time. */
struct bucket {
	uint64_t bytes, blocks; /* the highest in it; in the timeline of leaks the change in it */
	uint64_t allocations, frees;
};

struct buckets {
	struct answer *a;
	struct bucket *at;
	uint64_t n, length_ns;
	uint64_t now;		/* index of the bucket of the latest event */
	uint64_t bytes, blocks; /* live now */
};

/* ------------------------------------------------------------------ collecting -- */

static struct bucket *bucket_of(const struct buckets *t, uint64_t ns)
{
	uint64_t i = ns / t->length_ns;

	return &t->at[i < t->n ? i : t->n - 1];
}

static void note_level(struct bucket *b, uint64_t bytes, uint64_t blocks)
{
	if (bytes > b->bytes)
		b->bytes = bytes;
	if (blocks > b->blocks)
		b->blocks = blocks;
}

/* Moves on to the bucket of @ns: the level of now is that of all buckets up to it. */
static struct bucket *advance(struct buckets *t, uint64_t ns)
{
	uint64_t to = (uint64_t)(bucket_of(t, ns) - t->at);

	while (t->now < to) {
		t->now++;
		note_level(&t->at[t->now], t->bytes, t->blocks);
	}
	return &t->at[t->now];
}

static int on_allocated(void *ctx, const struct model_block *b)
{
	struct buckets *t = ctx;
	struct estimate e = model_estimate(t->a->m, b);
	struct bucket *bucket = advance(t, b->time_ns);

	t->bytes += e.bytes;
	t->blocks += e.blocks;
	note_level(bucket, t->bytes, t->blocks);
	if (!b->chain && !(b->flags & EV_F_CARRIED))
		bucket->allocations += e.blocks;
	return 0;
}

static int on_faulted(void *ctx, const struct model_block *page)
{
	advance(ctx, page->time_ns)->allocations++;
	return 0;
}

static int on_ended(void *ctx, const struct model_block *b, const struct mp_event *by,
		    enum block_end how)
{
	struct buckets *t = ctx;
	struct estimate e = model_estimate(t->a->m, b);
	struct bucket *bucket = advance(t, by->time_ns);

	t->bytes -= e.bytes;
	t->blocks -= e.blocks;
	if (!history_continues(by, how))
		bucket->frees += e.blocks;
	return 0;
}

static int leak_begins(void *ctx, const struct model_block *b)
{
	const struct buckets *t = ctx;
	struct estimate e = model_estimate(t->a->m, b);
	struct bucket *bucket = bucket_of(t, b->time_ns);

	bucket->bytes += e.bytes;
	bucket->blocks += e.blocks;
	return 0;
}

/* It was none. */
static int leak_ends(void *ctx, const struct model_block *b, const struct mp_event *by,
		     enum block_end how)
{
	const struct buckets *t = ctx;
	struct estimate e = model_estimate(t->a->m, b);
	struct bucket *bucket = bucket_of(t, b->time_ns);

	(void)by;
	(void)how;
	bucket->bytes -= e.bytes;
	bucket->blocks -= e.blocks;
	return 0;
}

/* Turns the changes into levels. */
static void sum_leaks(struct buckets *t)
{
	for (uint64_t i = 0; i < t->n; i++) {
		t->at[i].allocations = t->at[i].blocks;
		t->bytes = t->at[i].bytes += t->bytes;
		t->blocks = t->at[i].blocks += t->blocks;
	}
}

/* ------------------------------------------------------------------ writing -- */

/* The points of a graph. */
struct points {
	struct bucket *at;
	uint64_t *ms; /* Unix time */
	uint64_t n;
};

enum column { X, SIZE_DELTA, COUNT_DELTA, SIZE, COUNT, ALLOCATIONS, FREES, COLUMNS };

static long long value_of(const struct points *p, uint64_t i, enum column column)
{
	static const struct bucket none;
	const struct bucket *b = &p->at[i], *before = i ? b - 1 : &none;

	switch (column) {
	case X:
		return (long long)p->ms[i];
	case SIZE_DELTA:
		return (long long)(b->bytes - before->bytes);
	case COUNT_DELTA:
		return (long long)(b->blocks - before->blocks);
	case SIZE:
		return (long long)b->bytes;
	case COUNT:
		return (long long)b->blocks;
	case ALLOCATIONS:
		return (long long)b->allocations;
	default:
		return (long long)b->frees;
	}
}

static int write_points(struct answer *a, const struct points *p, struct mp_err *err)
{
	static const char *const names[COLUMNS] = {
	    "xs",	   "size_delta",   "count_delta", "allocated_size", "allocated_count",
	    "allocations", "deallocations"};
	yajl_gen g;
	int ret = answer_begin(a, &g, err);

	if (ret)
		return ret;
	yajl_gen_map_open(g);
	for (uint32_t column = 0; column < COLUMNS; column++) {
		json_name(g, names[column]);
		yajl_gen_array_open(g);
		for (uint64_t i = 0; i < p->n; i++)
			yajl_gen_integer(g, value_of(p, i, column));
		yajl_gen_array_close(g);
	}
	answer_estimated(a, g);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

static int points_new(struct points *p, uint64_t n, struct mp_err *err)
{
	*p = (struct points){.at = calloc(n, sizeof(*p->at)), .ms = calloc(n, sizeof(*p->ms))};
	return p->at && p->ms ? 0 : answer_no_memory(err);
}

static void points_free(struct points *p)
{
	free(p->at);
	free(p->ms);
}

static void add_point(struct points *p, const struct model *m, uint64_t ns, const struct bucket *b)
{
	p->ms[p->n] = (m->info.start_unix_ns + ns) / MILLISECOND;
	p->at[p->n++] = *b;
}

/* ------------------------------------------------------------------ endpoints -- */

/* Writes each bucket at its beginning, and the level at the end. */
static int write_buckets(const struct buckets *t, struct mp_err *err)
{
	struct bucket end = {.bytes = t->bytes, .blocks = t->blocks};
	const struct model *m = t->a->m;
	struct points p;
	int ret = points_new(&p, t->n + 1, err);

	for (uint64_t i = 0; i < t->n && !ret; i++)
		add_point(&p, m, i * t->length_ns, &t->at[i]);
	if (!ret) {
		add_point(&p, m, m->facts.end_ns, &end);
		ret = write_points(t->a, &p, err);
	}
	points_free(&p);
	return ret;
}

/* Reads the recording for its timeline, or the one of the leaks. */
static int write_timeline(struct answer *a, bool leaks, struct mp_err *err)
{
	struct buckets t = {.a = a, .length_ns = a->m->facts.end_ns / BUCKETS};
	struct history_sink sink = {.allocated = leaks ? leak_begins : on_allocated,
				    .faulted = leaks ? NULL : on_faulted,
				    .ended = leaks ? leak_ends : on_ended,
				    .ctx = &t};
	int ret;

	if (t.length_ns < LEAST_NS)
		t.length_ns = LEAST_NS;
	t.n = a->m->facts.end_ns / t.length_ns + 1;
	t.at = calloc(t.n, sizeof(*t.at));
	if (!t.at)
		return answer_no_memory(err);
	ret = model_replay(a->m, &sink, NULL, err);
	if (!ret) {
		if (leaks)
			sum_leaks(&t);
		else
			(void)advance(&t, a->m->facts.end_ns);
		ret = write_buckets(&t, err);
	}
	free(t.at);
	return ret;
}

/* The blocks that were culled are in the timeline of the model only. */
static int write_culled(struct answer *a, struct mp_err *err)
{
	const struct model *m = a->m;
	struct bucket end = {0};
	struct points p;
	uint64_t from = 0;
	int ret = points_new(&p, m->sums.timeline.n + 1, err);

	vec_for_each (&m->sums.timeline, point) {
		struct bucket b = {point->peak_bytes, point->peak_blocks, point->allocations,
				   point->frees};

		if (ret)
			break;
		add_point(&p, m, from, &b);
		end = (struct bucket){.bytes = point->live_bytes, .blocks = point->live_blocks};
		from = point->time_ns;
	}
	if (!ret) {
		add_point(&p, m, m->facts.end_ns, &end);
		ret = write_points(a, &p, err);
	}
	points_free(&p);
	return ret;
}

int answer_timeline(struct answer *a, struct mp_err *err)
{
	return a->m->sums.culled_blocks ? write_culled(a, err) : write_timeline(a, false, err);
}

int answer_timeline_leaked(struct answer *a, struct mp_err *err)
{
	return write_timeline(a, true, err);
}
