/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/event_read.h"

#include <stdlib.h>
#include "formats/record.h"

void event_reader_free(struct event_reader *r)
{
	free(r->es.block);
}

void events_end_chunk(struct event_reader *r)
{
	memset(r->at, 0, sizeof(r->at));
	memset(r->end, 0, sizeof(r->end));
}

const char *events_open(struct event_reader *r, struct chunk_file *f)
{
	uint64_t length[COLUMNS];

	if (!r->es.block)
		r->es.block = calloc(KNOWN_BLOCKS, sizeof(*r->es.block));
	if (!r->es.block)
		return "out of memory";
	events_restart(&r->es);
	for (size_t i = 0; i < COLUMNS; i++)
		length[i] = chunk_varint(f);
	for (size_t i = 0; i < COL_ITEMS; i++) {
		if (f->bad || length[i] > f->n - f->at)
			return "a damaged chunk";
		r->at[i] = f->raw + f->at;
		f->at += length[i];
		r->end[i] = f->raw + f->at;
	}
	return length[COL_ITEMS] == f->n - f->at ? NULL : "a damaged chunk";
}

static inline uint8_t get(struct event_reader *r, int col)
{
	if (r->at[col] < r->end[col])
		return *r->at[col]++;
	r->bad = true;
	return 0;
}

static uint64_t get_rest(struct event_reader *r)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		uint8_t b = get(r, COL_REST);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

/* Reads a value from @n columns from @col on. */
static inline uint64_t get_bytes(struct event_reader *r, int col, int n)
{
	uint64_t v = 0, last;
	int shift = 0;

	for (; n > 1; n--, shift += 8)
		v |= (uint64_t)get(r, col++) << shift;
	last = get(r, col);
	return v | (last == LONG ? get_rest(r) : last) << shift;
}

static inline uint64_t get_time(struct event_reader *r, int col, uint64_t *last)
{
	uint64_t d = get(r, col);

	if (d == LONG)
		d = (uint64_t)unzigzag(get_rest(r));
	else if (d >= SHORT_TIME)
		d = (d - SHORT_TIME) << 8 | get(r, col + 1);
	return *last += d;
}

static inline uint64_t get_address(struct event_reader *r, uint32_t code, int col, struct bases *b)
{
	uint32_t n = code % 4;
	uint64_t d = 0;

	if (code >= WHERE_ABSOLUTE) {
		r->bad = r->bad || code > WHERE_ABSOLUTE;
		d = get_rest(r);
		base_replace(b, d);
		return d;
	}
	for (uint32_t k = 0; k <= n; k++)
		d |= (uint64_t)get(r, col + (int)k) << 8 * k;
	return b->at[code / 4] += (uint64_t)unzigzag(d);
}

static inline void get_common(struct event_reader *r, struct chunk_state *st, uint8_t tag,
			      struct mp_event *ev)
{
	uint8_t changes;

	if (tag & TAG_FLAGS)
		ev->flags = get(r, COL_FLAGS);
	changes = tag & TAG_CHANGES ? get(r, COL_CHANGES) : 0;
	if (changes & CHANGE_REALLOC)
		ev->kind = ev->kind == EV_ALLOC ? EV_REALLOC_END : EV_REALLOC_BEGIN;
	if (changes & CHANGE_TID)
		st->tid = (uint32_t)get_rest(r);
	if (changes & CHANGE_HOOK)
		st->hook[ev->kind] = (uint16_t)get_rest(r);
	if (changes & CHANGE_WEIGHT)
		ev->weight = (uint8_t)get_rest(r);
	ev->tid = st->tid;
	ev->hook = st->hook[ev->kind];
}

static inline void get_sizes(struct event_reader *r, uint8_t tag, struct mp_event *ev)
{
	uint32_t *stack = stack_after(&r->es), *size;
	uint8_t *slack;

	if (tag & TAG_STACK)
		*stack = (uint32_t)get_bytes(r, COL_STACK, 2);
	r->es.last_stack = ev->stack = *stack;
	size = size_of(&r->es, ev->stack);
	ev->size = *size;
	if (tag & TAG_SIZE) {
		ev->size = get_bytes(r, COL_SIZE, 2);
		*size = (uint32_t)ev->size;
	}
	slack = slack_of(&r->es, ev->size);
	ev->usable = ev->size + *slack;
	if (tag & TAG_USABLE) {
		ev->usable = ev->size + (uint64_t)unzigzag(get_bytes(r, COL_USABLE, 1));
		*slack = (uint8_t)(ev->usable - ev->size);
	}
}

/* Return: @number, or 0 if there is no block of that number. */
static uint32_t checked(struct event_reader *r, uint32_t number)
{
	if (block_known(&r->es, number))
		return number;
	r->bad = true;
	return 0;
}

static uint64_t get_freed(struct event_reader *r, uint16_t class)
{
	uint32_t freed = checked(r, block_freed(&r->es, class));

	block_take(&r->es, class);
	return block_at(&r->es, freed)->addr;
}

static uint64_t get_other(struct event_reader *r)
{
	uint32_t code = get(r, COL_ALLOC_WHERE), back;

	if (code != WHERE_BLOCK)
		return get_address(r, code, COL_ALLOC_ADDR, &r->es.allocs);
	back = (uint32_t)get_bytes(r, COL_ALLOC_BLOCK, 3);
	return block_at(&r->es, checked(r, r->es.last - back))->addr;
}

static uint64_t get_alloc_address(struct event_reader *r, uint8_t tag, uint16_t class)
{
	switch (tag & TAG_AT) {
	case TAG_AT_FREED:
		return get_freed(r, class);
	case TAG_AT_NEXT:
		return r->es.next_addr;
	case TAG_AT_NEAR:
		return r->es.ended_addr + (uint64_t)unzigzag(get(r, COL_ALLOC_NEAR));
	default:
		return get_other(r);
	}
}

/* Only small blocks have a weight, at least 2. */
static bool weight_valid(const struct mp_event *ev)
{
	return !ev->weight || (ev->weight <= CHUNK_WEIGHT_MAX && ev->size < MPR_WEIGHT_MAX_SIZE);
}

static void get_alloc(struct event_reader *r, struct chunk_state *st, uint8_t tag,
		      struct mp_event *ev)
{
	uint16_t class;

	ev->kind = EV_ALLOC;
	ev->time_ns = get_time(r, COL_ALLOC_TIME, &st->time);
	get_common(r, st, tag, ev);
	get_sizes(r, tag, ev);
	r->es.last++;
	class = class_of(ev->usable);
	ev->addr = get_alloc_address(r, tag, class);
	if (ev->kind == EV_REALLOC_END)
		ev->old_addr = r->es.realloc_addr;
	block_put(&r->es, ev, class, !(tag & TAG_AT));
	r->bad = r->bad || !weight_valid(ev);
}

static uint32_t get_number(struct event_reader *r, uint8_t tag)
{
	uint32_t number = r->es.ended;

	switch (tag & TAG_BLOCK) {
	case TAG_BLOCK_AFTER:
		number++;
		break;
	case TAG_BLOCK_BEFORE:
		number--;
		break;
	default:
		number += (uint32_t)unzigzag(get_bytes(r, COL_FREE_BLOCK, 3));
	}
	return checked(r, number);
}

static void get_free(struct event_reader *r, struct chunk_state *st, uint8_t tag,
		     struct mp_event *ev)
{
	uint32_t number = 0;

	ev->kind = EV_FREE;
	ev->time_ns = st->time;
	if (tag & TAG_TIME)
		ev->time_ns = get_time(r, COL_FREE_TIME, &st->time);
	get_common(r, st, tag, ev);
	if (ev->kind == EV_FREE && ev->flags & EV_F_STACK)
		ev->stack = (uint32_t)get_bytes(r, COL_STACK, 2);
	if ((tag & TAG_BLOCK) == TAG_BLOCK_ADDRESS) {
		ev->addr = get_address(r, get(r, COL_FREE_WHERE), COL_FREE_ADDR, &r->es.frees);
	} else {
		number = get_number(r, tag);
		ev->addr = block_at(&r->es, number)->addr;
	}
	block_ended(&r->es, ev, number);
	r->bad = r->bad || tag & ~TAG_FREE_USED || ev->weight;
}

bool events_next(struct event_reader *r, struct chunk_state *st, struct mp_event *ev)
{
	uint8_t tag = get(r, COL_TAG);

	if (!tag)
		return false;
	memset(ev, 0, sizeof(*ev));
	ev->fd = -1;
	if (tag & TAG_ALLOC)
		get_alloc(r, st, tag, ev);
	else
		get_free(r, st, tag, ev);
	r->bad = r->bad || !(tag & (TAG_ALLOC | TAG_FREE));
	return true;
}
