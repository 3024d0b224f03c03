/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order/recent.h"

#include <stdlib.h>
#include <string.h>
#include "record/wire.h"

#define BITS (MPR_RECENT / 8)

void recent_continue(const struct ss_thread *t, struct ring *r)
{
	uint64_t tail = r->page->data_tail, at = t->read_to;

	r->keep = MPR_RECENT;
	/* The target can write both. */
	r->at = at - tail <= MPR_RECENT ? at : tail;
}

static uint64_t *word_of(struct ss_thread *t, uint64_t position)
{
	return &t->open[position / 8 % BITS / 64];
}

static uint64_t bit_of(uint64_t position)
{
	return 1ull << position / 8 % 64;
}

/* Return: the header of the record at @position, which the agent can change at any time. */
static struct mpr_header header_at(const struct ring *r, uint64_t position)
{
	const void *at = r->data + (position & (r->size - 1));
	uint64_t word = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
	struct mpr_header h;

	memcpy(&h, &word, sizeof(h));
	return h;
}

/* Return: 0, or -ENOMEM: to be tried again. */
static int add_end(struct batch *b, const struct ring *r, uint64_t position,
		   const struct mpr_header *h)
{
	struct end e = {.free.h = {MPR_FREE, 0, sizeof(e.free)},
			.position = position + mpr_ended(h)};
	const uint64_t *words = (const void *)r->data;

	e.free.addr_hook = words[((position + 16) & (r->size - 1)) / 8] & MPR_ADDR_MASK;
	e.free.addr_hook |= (uint64_t)mpr_ended_hook(h) << MPR_ADDR_BITS;
	return vec_push(&b->ends, e);
}

/* Return: whether the record at @position is not to be looked at again. */
static bool look_at_record(const struct ring *r, uint64_t position, uint64_t to, struct batch *b)
{
	struct mpr_header h = header_at(r, position);

	if (mpr_type(&h) != MPR_ALLOC)
		return true;
	if (!mpr_ended(&h))
		return (to & ~7ull) - position > MPR_RECENT;
	return position + mpr_ended(&h) < to && !add_end(b, r, position, &h);
}

static int by_position(const void *a, const void *b)
{
	uint64_t x = ((const struct end *)a)->position, y = ((const struct end *)b)->position;

	return x < y ? -1 : x > y;
}

/* Return: the position of bit @bit of t->open[@word]. */
static uint64_t position_of(const struct ring *r, uint32_t word, uint32_t bit)
{
	uint64_t first = r->at - MPR_RECENT;

	return first + 8 * ((word * 64 + bit - first / 8) % BITS);
}

uint32_t recent_ends(struct ss_thread *t, const struct ring *r, uint64_t to, struct batch *b)
{
	size_t before = b->ends.n;

	for (uint32_t word = 0; word < SS_OPEN_WORDS; word++) {
		for (uint64_t bits = t->open[word]; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);

			if (look_at_record(r, position_of(r, word, bit), to, b))
				t->open[word] &= ~(1ull << bit);
		}
	}
	if (b->ends.n > before)
		qsort(b->ends.at + before, b->ends.n - before, sizeof(*b->ends.at), by_position);
	return (uint32_t)(b->ends.n - before);
}

uint32_t recent_waiting(const struct ss_thread *t, const struct ring *r)
{
	uint32_t n = 0;

	for (uint32_t word = 0; word < SS_OPEN_WORDS; word++) {
		for (uint64_t bits = t->open[word]; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);
			struct mpr_header h = header_at(r, position_of(r, word, bit));

			n += mpr_type(&h) == MPR_ALLOC && mpr_ended(&h);
		}
	}
	return n;
}

void recent_read(struct ss_thread *t, const struct ring *r, uint64_t to, uint8_t *copy, uint64_t n)
{
	for (uint64_t at = 0; at < n && wire_valid(copy + at, n - at);) {
		struct mpr_header *h = (void *)(copy + at);
		bool is_open =
		    mpr_type(h) == MPR_ALLOC && (!mpr_ended(h) || r->at + at + mpr_ended(h) >= to);

		if (is_open)
			h->type = MPR_ALLOC;
		if (is_open && n - at <= MPR_RECENT)
			*word_of(t, r->at + at) |= bit_of(r->at + at);
		at += h->size;
	}
	recent_drop(t, r, n);
}

void recent_drop(struct ss_thread *t, const struct ring *r, uint64_t n)
{
	__atomic_store_n(&t->read_to, r->at + n, __ATOMIC_RELEASE);
}
