/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "export/lists/allocation_seek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"

#define BUCKETS	   (1u << 20)
#define MOST_BYTES ((1ull << 48) - 1) /* also of addresses */

/*
 * Each reading counts the entries whose number is between .low and .high in buckets of equal width, and
 * continues with the bucket in which the wanted entry is.  The number is the rank: the key, or its
 * complement if the list is descending; or if too many entries have the same rank, their ordinal.
 */
struct seek {
	const struct view *v;
	uint64_t *count; /* [BUCKETS] */
	uint64_t low, high, before;
	uint64_t total, last; /* entries of the list; the largest ordinal */
	uint32_t shift;
	bool by_ordinal;
	uint64_t rank; /* by_ordinal: of the entries */
};

static uint64_t rank_of(const struct seek *s, uint64_t key)
{
	return s->v->descending ? ~key : key;
}

static int on_one(void *ctx, const struct allocation *a)
{
	struct seek *s = ctx;
	uint64_t rank = rank_of(s, a->key), number = s->by_ordinal ? a->block.ordinal : rank;

	s->total++;
	if (a->block.ordinal > s->last)
		s->last = a->block.ordinal;
	if ((s->by_ordinal && rank != s->rank) || number < s->low || number > s->high)
		return 0;
	s->count[(number - s->low) >> s->shift]++;
	return 0;
}

/* Narrows the range to the bucket in which the wanted entry is. */
static void narrow(struct seek *s)
{
	uint64_t width = 1ull << s->shift, last = (s->high - s->low) >> s->shift, i = 0;

	while (i < last && s->before + s->count[i] <= s->v->skip)
		s->before += s->count[i++];
	s->low += i * width;
	if (s->high - s->low >= width)
		s->high = s->low + width - 1;
}

static int count_ranks(struct seek *s, const struct model *m, struct mp_err *err)
{
	struct allocation_sink sink = {.one = on_one, .ctx = s};

	s->shift = 0;
	while ((s->high - s->low) >> s->shift >= BUCKETS)
		s->shift++;
	memset(s->count, 0, BUCKETS * sizeof(*s->count));
	s->total = 0;
	return allocations_pass(m, s->v->sort, &sink, err);
}

static int find_range(struct seek *s, const struct model *m, uint64_t within, struct mp_err *err)
{
	int ret = count_ranks(s, m, err);

	while (!ret && s->v->skip < s->total) {
		narrow(s);
		if (s->v->skip - s->before <= within)
			break;
		if (s->low == s->high) {
			s->by_ordinal = true;
			s->rank = s->low;
			s->low = 0;
			s->high = s->last;
		}
		ret = count_ranks(s, m, err);
	}
	return ret;
}

static void set_place(const struct seek *s, struct allocation_place *place)
{
	uint64_t rank = s->by_ordinal ? s->rank : s->low;
	bool within = s->by_ordinal && s->low;

	if (s->v->skip >= s->total) {
		*place = (struct allocation_place){.before = s->total};
		place->after.key = rank_of(s, UINT64_MAX);
		place->after.block.ordinal = UINT64_MAX;
		return;
	}
	*place = (struct allocation_place){.before = s->before, .at_start = !within && !rank};
	place->after.key = rank_of(s, within ? rank : rank - 1);
	place->after.block.ordinal = within ? s->low - 1 : UINT64_MAX;
}

int allocations_seek(const struct model *m, const struct view *v, uint64_t within,
		     struct allocation_place *place, struct mp_err *err)
{
	bool is_time = v->sort == BY_TIMESTAMP || v->sort == BY_LIFETIME;
	uint64_t most = is_time ? m->facts.end_ns : MOST_BYTES;
	struct seek s = {.v = v, .count = malloc(BUCKETS * sizeof(*s.count))};
	int ret;

	s.low = v->descending ? ~most : 0;
	s.high = v->descending ? UINT64_MAX : most;
	ret = s.count ? find_range(&s, m, within, err)
		      : mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	free(s.count);
	if (!ret)
		set_place(&s, place);
	return ret;
}
