/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "formats/event_write.h"

#include <errno.h>
#include <stdlib.h>

#define NUMBERS KNOWN_BLOCKS /* entries of the hash table; a collision only makes a longer code */

int event_writer_init(struct event_writer *w)
{
	w->es.block = calloc(KNOWN_BLOCKS, sizeof(*w->es.block));
	w->number = calloc(NUMBERS, sizeof(*w->number));
	w->column = malloc(EVENTS_MAX);
	if (!w->es.block || !w->number || !w->column)
		return -ENOMEM;
	events_begin_chunk(w);
	return 0;
}

void event_writer_free(struct event_writer *w)
{
	free(w->es.block);
	free(w->number);
	free(w->column);
}

/* The table of numbers stays: each is checked against the block before it is used. */
void events_begin_chunk(struct event_writer *w)
{
	for (size_t i = 0; i < COL_ITEMS; i++)
		w->at[i] = w->column + LENGTHS_MAX + i * COLUMN_ROOM;
	if (w->any)
		events_restart(&w->es);
	w->any = false;
}

static inline void put_byte(struct event_writer *w, int col, uint64_t v)
{
	*w->at[col]++ = (uint8_t)v;
}

static void put_rest(struct event_writer *w, uint64_t v)
{
	w->at[COL_REST] = varint(w->at[COL_REST], v);
}

/* Columns compress best if each byte of a value has its own: most values have the same high bytes.
 * Puts @v into @n columns from @col on. */
static inline void put_bytes(struct event_writer *w, int col, int n, uint64_t v)
{
	for (; n > 1; n--, v >>= 8)
		put_byte(w, col++, v);
	put_byte(w, col, v < LONG ? v : LONG);
	if (v >= LONG)
		put_rest(w, v);
}

static inline void put_time(struct event_writer *w, int col, uint64_t time_ns, uint64_t *last)
{
	uint64_t d = time_ns - *last;

	*last = time_ns;
	if (d < SHORT_TIME) {
		put_byte(w, col, d);
	} else if (d < (uint64_t)(LONG - SHORT_TIME) << 8) {
		put_byte(w, col, SHORT_TIME + (d >> 8));
		put_byte(w, col + 1, d);
	} else {
		put_byte(w, col, LONG);
		put_rest(w, zigzag((int64_t)d));
	}
}

static inline void put_address(struct event_writer *w, int where, int col, struct bases *b,
			       uint64_t addr)
{
	for (uint32_t i = 0; i < BASES; i++) {
		uint64_t d = zigzag((int64_t)(addr - b->at[i]));
		uint32_t n = (d > 0xff) + (d > 0xffff) + (d > 0xffffff);

		if (d >> 32)
			continue;
		put_byte(w, where, i * 4 + n);
		for (uint32_t k = 0; k <= n; k++)
			put_byte(w, col + (int)k, d >> 8 * k);
		b->at[i] = addr;
		return;
	}
	put_byte(w, where, WHERE_ABSOLUTE);
	put_rest(w, addr);
	base_replace(b, addr);
}

/* Puts what seldom changes.  Return: the bits for the tag. */
static inline uint8_t put_common(struct event_writer *w, struct chunk_state *st,
				 const struct mp_event *ev, uint8_t changes)
{
	if (ev->tid != st->tid)
		changes |= CHANGE_TID;
	if (ev->hook != st->hook[ev->kind])
		changes |= CHANGE_HOOK;
	if (ev->flags)
		put_byte(w, COL_FLAGS, ev->flags);
	if (!changes)
		return ev->flags ? TAG_FLAGS : 0;
	put_byte(w, COL_CHANGES, changes);
	if (changes & CHANGE_TID)
		put_rest(w, st->tid = ev->tid);
	if (changes & CHANGE_HOOK)
		put_rest(w, st->hook[ev->kind] = ev->hook);
	if (changes & CHANGE_WEIGHT)
		put_rest(w, ev->weight);
	return TAG_CHANGES | (ev->flags ? TAG_FLAGS : 0);
}

/* Puts stack, size and usable size where they are not as predicted.  Return: as put_common(). */
static inline uint8_t put_sizes(struct event_writer *w, const struct mp_event *ev)
{
	uint32_t *stack = stack_after(&w->es), *size = size_of(&w->es, ev->stack);
	uint8_t *slack = slack_of(&w->es, ev->size), tag = 0;

	if (*stack != ev->stack) {
		tag |= TAG_STACK;
		put_bytes(w, COL_STACK, 2, ev->stack);
		*stack = ev->stack;
	}
	w->es.last_stack = ev->stack;
	if (*size != ev->size) {
		tag |= TAG_SIZE;
		put_bytes(w, COL_SIZE, 2, ev->size);
		*size = (uint32_t)ev->size;
	}
	if (ev->usable - ev->size != *slack) {
		tag |= TAG_USABLE;
		put_bytes(w, COL_USABLE, 1, zigzag((int64_t)(ev->usable - ev->size)));
		*slack = (uint8_t)(ev->usable - ev->size);
	}
	return tag;
}

static inline uint32_t *number_of(const struct event_writer *w, uint64_t addr)
{
	return &w->number[addr * 0x9e3779b97f4a7c15ull >> 32 & (NUMBERS - 1)];
}

/* Return: the number by which the block at @addr was allocated or freed last; 0: not known. */
static inline uint32_t known_number(struct event_writer *w, uint64_t addr)
{
	uint32_t number = *number_of(w, addr);

	return block_known(&w->es, number) && block_at(&w->es, number)->addr == addr ? number : 0;
}

/* Puts an address that is not as predicted. */
static inline void put_other(struct event_writer *w, uint64_t addr)
{
	uint32_t number = known_number(w, addr);

	/* The last number is that of this allocation, whose entry is not filled yet: it is a block of
	 * an earlier chunk, and a reader may begin with this one. */
	if (!number || number == w->es.last) {
		put_address(w, COL_ALLOC_WHERE, COL_ALLOC_ADDR, &w->es.allocs, addr);
		return;
	}
	put_byte(w, COL_ALLOC_WHERE, WHERE_BLOCK);
	put_bytes(w, COL_ALLOC_BLOCK, 3, w->es.last - number);
}

static void put_alloc(struct event_writer *w, struct chunk_state *st, const struct mp_event *ev,
		      uint64_t time_ns)
{
	uint8_t changes =
	    (ev->kind == EV_REALLOC_END ? CHANGE_REALLOC : 0) | (ev->weight ? CHANGE_WEIGHT : 0);
	uint16_t class = class_of(ev->usable);
	struct event_state *es = &w->es;
	uint64_t near = zigzag((int64_t)(ev->addr - es->ended_addr));
	uint8_t tag = TAG_ALLOC;
	uint32_t freed;

	put_time(w, COL_ALLOC_TIME, time_ns, &st->time);
	tag |= put_common(w, st, ev, changes);
	tag |= put_sizes(w, ev);
	es->last++;
	freed = block_freed(es, class);
	if (freed && block_at(es, freed)->addr == ev->addr) {
		block_take(es, class);
	} else if (ev->addr == es->next_addr) {
		tag |= TAG_AT_NEXT;
	} else if (near <= UINT8_MAX) {
		tag |= TAG_AT_NEAR;
		put_byte(w, COL_ALLOC_NEAR, near);
	} else {
		tag |= TAG_AT_OTHER;
		put_other(w, ev->addr);
	}
	*number_of(w, ev->addr) = es->last;
	if (block_put(es, ev, class, !(tag & TAG_AT)))
		*number_of(w, ev->old_addr) = es->last;
	put_byte(w, COL_TAG, tag);
}

/* Puts which block ends.  Return: as put_common(). */
static inline uint8_t put_which(struct event_writer *w, uint64_t addr, uint32_t number)
{
	int32_t ahead = (int32_t)(number - w->es.ended);

	if (!number) {
		put_address(w, COL_FREE_WHERE, COL_FREE_ADDR, &w->es.frees, addr);
		return TAG_BLOCK_ADDRESS;
	}
	if (ahead == 1)
		return TAG_BLOCK_AFTER;
	if (ahead == -1)
		return TAG_BLOCK_BEFORE;
	put_bytes(w, COL_FREE_BLOCK, 3, zigzag(ahead));
	return TAG_BLOCK_NUMBER;
}

static void put_free(struct event_writer *w, struct chunk_state *st, const struct mp_event *ev,
		     uint64_t time_ns)
{
	uint8_t changes = ev->kind == EV_REALLOC_BEGIN ? CHANGE_REALLOC : 0;
	uint32_t number = known_number(w, ev->addr);
	uint8_t tag = TAG_FREE;

	if (time_ns != st->time) {
		tag |= TAG_TIME;
		put_time(w, COL_FREE_TIME, time_ns, &st->time);
	}
	tag |= put_common(w, st, ev, changes);
	if (ev->kind == EV_FREE && ev->flags & EV_F_STACK)
		put_bytes(w, COL_STACK, 2, ev->stack);
	tag |= put_which(w, ev->addr, number);
	block_ended(&w->es, ev, number);
	if (ev->kind == EV_FREE)
		*number_of(w, ev->addr) = w->es.last;
	put_byte(w, COL_TAG, tag);
}

bool events_put(struct event_writer *w, struct chunk_state *st, const struct mp_event *ev,
		uint64_t time_ns)
{
	switch (ev->kind) {
	case EV_REALLOC_END:
		if (ev->old_addr != w->es.realloc_addr)
			return false;
		/* fall through */
	case EV_ALLOC:
		put_alloc(w, st, ev, time_ns);
		break;
	case EV_FREE:
	case EV_REALLOC_BEGIN:
		put_free(w, st, ev, time_ns);
		break;
	default:
		return false;
	}
	w->any = true;
	return true;
}

void events_prefetch(const struct event_writer *w, uint64_t addr)
{
	__builtin_prefetch(number_of(w, addr), 1);
}

void events_prefetch_block(const struct event_writer *w, uint64_t addr)
{
	__builtin_prefetch(block_at(&w->es, *number_of(w, addr)), 1);
}

void events_chunk(struct event_writer *w, const uint8_t *items, size_t n, struct raw_chunk *c)
{
	uint8_t lengths[LENGTHS_MAX], *p = lengths;
	size_t prefix;

	*c = (struct raw_chunk){.type = CHUNK_EVENTS, .parts = COLUMNS};
	for (size_t i = 0; i < COL_ITEMS; i++) {
		c->part[i].n = events_bytes(w, i);
		c->part[i].at = w->at[i] - c->part[i].n;
		p = varint(p, c->part[i].n);
	}
	c->part[COL_ITEMS].at = items;
	p = varint(p, c->part[COL_ITEMS].n = n);
	prefix = (size_t)(p - lengths);
	memcpy(w->column + LENGTHS_MAX - prefix, lengths, prefix);
	c->part[0].at -= prefix;
	c->part[0].n += prefix;
}
