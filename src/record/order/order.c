/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/bitmap.h"
#include "record/order/sort.h"
#include "record/wire.h"

#define FIRST_EVENTS 65536u
#define PROBES	     16u  /* entries of the table of undated ends in which an address can be */
#define LOOKS	     32u  /* for each event of a batch, on average, in order_postpone() */
#define ENDS	     256u /* ends that can be open at once: more than a ring has recent records */

static const struct mpr_free *record(const uint8_t *p)
{
	return (const void *)p; /* every record begins with the header and time of this one */
}

/* Return: whether a complete record of a known type, not later than @now, is at @p. */
static bool valid(const uint8_t *p, uint64_t left, uint64_t now)
{
	return wire_valid(p, left) && record(p)->time <= now;
}

static int more_room(struct order *o)
{
	size_t cap = o->cap ? o->cap * 2 : FIRST_EVENTS;
	struct pending *p = reallocarray(o->events, cap, sizeof(*p)), *q;

	if (!p)
		return -ENOMEM;
	o->events = p;
	q = reallocarray(o->scratch, cap, sizeof(*q));
	if (!q)
		return -ENOMEM;
	o->scratch = q;
	o->cap = cap;
	return 0;
}

/* Adds an event.  In parts, because reading a whole that was just written in parts stalls the processor. */
static inline int add_pending(struct order *o, uint64_t time, const uint8_t *rec, uint32_t slot,
			      uint32_t what)
{
	struct pending *e;

	if (o->n == o->cap && more_room(o))
		return -ENOMEM;
	e = &o->events[o->n++];
	e->time = time;
	e->rec = rec;
	e->slot = slot;
	e->what = what;
	return 0;
}

static uint64_t hash(uint64_t addr)
{
	return addr * 0x9e3779b97f4a7c15ull >> 32;
}

static void note_end(struct order *o, uint64_t addr)
{
	bitmap_set(o->ended, hash(addr) & o->ended_mask);
}

/* Return: the entry of @addr, or a free one for it; NULL: neither is near.  A malicious target could choose
 * addresses that make a longer search slow. */
static struct undated_end *undated_at(const struct order *o, uint64_t addr)
{
	for (uint64_t i = hash(addr), end = i + PROBES; i < end; i++) {
		struct undated_end *e = &o->undated[i & o->undated_mask];

		if (!e->addr || e->addr == addr)
			return e;
	}
	return NULL;
}

bool order_can_end(const struct order *o, uint64_t addr, uint32_t slot)
{
	uint64_t bit = hash(addr) & o->ended_mask;
	const struct undated_end *e;

	if (bitmap_has(o->ended, bit))
		return true;
	if (!bitmap_has(o->undated_bits, bit))
		return false;
	e = undated_at(o, addr);
	return e && e->addr && (e->slot != slot || e->shared);
}

/* Return: @table, or a larger one in its place, with @n entries of @size bytes that are zero; NULL: no
 * memory.  @cap: the number of entries that are allocated. */
static void *cleared(void *table, uint64_t *cap, uint64_t n, size_t size)
{
	if (n > *cap) {
		free(table);
		table = malloc(n * size);
		*cap = table ? n : 0;
	}
	return table ? memset(table, 0, n * size) : NULL;
}

/* Prepares for about @undated ends whose time is not known exactly. */
static int forget_undated(struct order *o, uint64_t undated)
{
	uint64_t entries = PROBES;

	while (entries < 2 * undated)
		entries *= 2;
	o->undated = cleared(o->undated, &o->undated_cap, entries, sizeof(*o->undated));
	if (!o->undated)
		return -ENOMEM;
	o->undated_mask = entries - 1;
	return 0;
}

/* Prepares for about @records records. */
static int forget_ends(struct order *o, uint64_t records)
{
	uint64_t words = 16;

	while (words * 4 < records)
		words *= 2;
	o->ended = cleared(o->ended, &o->ended_cap, 2 * words, sizeof(*o->ended));
	if (!o->ended)
		return -ENOMEM;
	o->undated_bits = o->ended + words;
	o->ended_mask = words * 64 - 1;
	return 0;
}

/* The ends of blocks that were met in a ring, while its records after them have not been. */
struct ends {
	uint32_t n;
	struct {
		uint64_t position;
		const uint8_t *rec;
		size_t begun; /* index of the event that began the block; SIZE_MAX: not here */
	} at[ENDS];
};

static void ends_add(struct ends *e, uint64_t position, const uint8_t *rec, size_t begun)
{
	uint32_t k = e->n;

	if (e->n == ENDS) /* the target's records are not the agent's */
		return;
	for (; k && e->at[k - 1].position > position; k--)
		e->at[k] = e->at[k - 1];
	e->at[k].position = position;
	e->at[k].rec = rec;
	e->at[k].begun = begun;
	e->n++;
}

/* A ring whose records are being added. */
struct adding {
	const struct batch *batch;
	const struct segment *segment;
	uint64_t latest; /* time of the latest record so far; before the first: struct lane */
	bool has_record;
	struct ends ends;
};

/* Return: the time of an end between the records so far and one of the time @next. */
static uint64_t end_time(const struct adding *a, uint64_t next)
{
	uint64_t time = a->latest;

	if (a->has_record && next <= a->batch->until)
		return time;
	if (next > a->batch->until)
		time = a->batch->read_at;
	if (next < time)
		time = next;
	/* A record that a signal handler interrupted comes after the handler's later ones. */
	return a->has_record && a->latest > time ? a->latest : time;
}

/* Makes @e, which is not ORDER_SHORT, an end of a block after @earliest. */
static int make_end(struct order *o, struct pending *e, uint64_t earliest)
{
	uint64_t addr = record(e->rec)->addr_hook & MPR_ADDR_MASK;
	struct undated_end *end = undated_at(o, addr);

	if (end)
		*end = (struct undated_end){addr, e->slot,
					    end->shared || (end->addr && end->slot != e->slot)};
	else
		note_end(o, addr);
	bitmap_set(o->undated_bits, hash(addr) & o->ended_mask);
	e->what = ORDER_END | (uint32_t)o->earliest.n << ORDER_NUMBER;
	return vec_push(&o->earliest, earliest);
}

/* Return: whether an end is ORDER_SHORT: its block began in this batch, at events[@begun], and the
 * thread's next record, at @next, is complete in the same batch as both, this or the next one.  If it
 * is not in the next one either, settle_kept() finds that. */
static bool is_short(const struct order *o, const struct adding *a, size_t begun, uint64_t next)
{
	if (begun == SIZE_MAX || next == UINT64_MAX)
		return false;
	return next <= a->batch->until || o->events[begun].time > a->batch->until;
}

/* Adds the ends up to @position; @next: time of the ring's next record. */
static int add_ends(struct order *o, struct adding *a, uint64_t position, uint64_t next)
{
	uint64_t time = end_time(a, next);
	uint32_t k = 0;
	int ret = 0;

	for (; k < a->ends.n && a->ends.at[k].position <= position && !ret; k++) {
		struct pending e = {
		    .time = time, .rec = a->ends.at[k].rec, .slot = a->segment->slot};
		size_t begun = a->ends.at[k].begun;

		if (is_short(o, a, begun, next)) {
			e.time = a->latest;
			o->events[begun].what |= ORDER_SHORT;
			e.what = o->events[begun].what | ORDER_END;
		} else {
			ret = make_end(o, &e, a->latest);
		}
		ret = ret ? ret : add_pending(o, e.time, e.rec, e.slot, e.what);
	}
	a->ends.n -= k;
	if (a->ends.n) /* rarely: most blocks end before the next record */
		memmove(a->ends.at, a->ends.at + k, a->ends.n * sizeof(a->ends.at[0]));
	return ret;
}

static int add_record(struct order *o, struct adding *a, const uint8_t *p, uint64_t position)
{
	const struct mpr_header *h = &record(p)->h;
	uint64_t time = record(p)->time;
	int ret = a->ends.n ? add_ends(o, a, position, time) : 0;
	uint32_t what = 0;

	if (mpr_ended(h)) {
		what = (uint32_t)(position >> 5) % ORDER_NUMBERS << ORDER_NUMBER;
		ends_add(&a->ends, position + mpr_ended(h), p, o->n);
	}
	if (time > a->latest || !a->has_record)
		a->latest = time;
	a->has_record = true;
	if (mpr_kind(mpr_type(h)) == MPR_LOST_FREE || mpr_type(h) == MPR_REALLOC_BEGIN)
		note_end(o, record(p)->addr_hook & MPR_ADDR_MASK);
	return ret ? ret : add_pending(o, time, p, a->segment->slot, what);
}

/* Adds a segment, whose first byte is @p and whose first end is b->ends.at[@end]; @latest: time of the
 * thread's latest record before it.  Return: whether its rest was discarded. */
static bool add_segment(struct order *o, const struct batch *b, const struct segment *s,
			const uint8_t *p, size_t end, uint64_t latest, uint64_t now)
{
	struct adding a = {.batch = b, .segment = s, .latest = latest};
	uint64_t at = 0;
	bool is_whole = true;

	for (uint32_t k = 0; k < s->nends; k++) {
		const struct end *e = &b->ends.at[end + k];

		ends_add(&a.ends, e->position, (const void *)&e->free, SIZE_MAX);
	}
	while (at < s->bytes && is_whole) {
		is_whole = valid(p + at, s->bytes - at, now) &&
			   !add_record(o, &a, p + at, s->position + at);
		at += is_whole ? record(p + at)->h.size : 0;
	}
	return add_ends(o, &a, UINT64_MAX, UINT64_MAX) || !is_whole;
}

static int add_kept(struct order *o)
{
	const uint8_t *p = o->before.data;

	for (size_t i = 0; i < o->before.n; i++) {
		const struct kept *k = &o->before.kept[i];
		struct pending e = {k->time, p, k->slot, k->what};

		if (order_is_end(&e) && make_end(o, &e, k->earliest))
			return -ENOMEM;
		if (add_pending(o, e.time, e.rec, e.slot, e.what))
			return -ENOMEM;
		if (!(e.what & ORDER_END) && order_ended(&e))
			note_end(o, order_ended(&e));
		p += record(p)->h.size;
	}
	return 0;
}

/* What is known of a thread's records before those of its segment are added. */
struct lane {
	uint64_t latest; /* time of its latest record that was kept, or the first of this batch */
	uint64_t first;	 /* time of the first record in its segment; UINT64_MAX: none */
	bool goes_on;	 /* settle_kept(): a record follows that is complete in this batch */
};

static uint32_t count_lanes(const struct order *o, const struct batch *b)
{
	uint32_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		n = o->events[i].slot >= n ? o->events[i].slot + 1 : n;
	for (uint32_t k = 0; k < b->nsegments; k++)
		n = b->segment[k].slot >= n ? b->segment[k].slot + 1 : n;
	return n;
}

/* Return: a struct lane for each slot, without the records that were kept; NULL: no memory. */
static struct lane *find_lanes(const struct order *o, const struct batch *b, uint64_t now)
{
	uint32_t n = count_lanes(o, b);
	struct lane *lanes = calloc(n + 1, sizeof(*lanes));
	const uint8_t *p = b->data;

	for (uint32_t i = 0; lanes && i < n; i++)
		lanes[i] = (struct lane){o->before.until + 1, UINT64_MAX, false};
	for (uint32_t k = 0; lanes && k < b->nsegments; k++) {
		const struct segment *s = &b->segment[k];

		if (valid(p, s->bytes, now))
			lanes[s->slot].first = record(p)->time;
		p += s->bytes;
	}
	return lanes;
}

/* Makes the ORDER_SHORT end o->events[@i] one of unknown time, of a block that is not short.  If its
 * allocation was processed before its turn, the block can be short: only its number finds it. */
static int unsettle(struct order *o, size_t i)
{
	struct pending *end = &o->events[i];

	for (size_t k = i; k-- > 0;) {
		if (o->events[k].slot != end->slot || o->events[k].what != (end->what & ~ORDER_END))
			continue;
		o->events[k].what &= ~ORDER_SHORT;
		return make_end(o, end, end->time);
	}
	note_end(o, order_ended(end));
	return 0;
}

/* Ends that were kept as ORDER_SHORT are not if the thread's next record is not complete in this
 * batch, or if some records were processed before their turn. */
static int settle_kept(struct order *o, struct lane *lanes)
{
	int ret = 0;

	for (size_t i = o->n; i-- > 0 && !ret;) {
		const struct pending *e = &o->events[i];
		struct lane *lane = &lanes[e->slot];

		if (!(e->what & ORDER_END))
			lane->goes_on |= e->time <= o->until;
		else if (e->what & ORDER_SHORT &&
			 (o->before.any_taken ||
			  (record(e->rec)->time <= o->until && !lane->goes_on)))
			ret = unsettle(o, i);
	}
	return ret;
}

/*
 * An end that was kept is between the records around it, and before the reader saw it.  If all
 * events of that time are in this batch, it is dated to the earliest moment (order_postpone()).
 */
static void date_kept(struct order *o, struct lane *lanes)
{
	for (size_t i = 0; i < o->n; i++) {
		struct pending *e = &o->events[i];
		struct lane *lane = &lanes[e->slot];
		uint64_t low;

		if (!order_is_end(e)) {
			lane->latest = e->time > lane->latest ? e->time : lane->latest;
			continue;
		}
		low = order_earliest(o, e) > o->before.until ? order_earliest(o, e)
							     : o->before.until + 1;
		if (lane->first < e->time)
			e->time = lane->first;
		if (e->time <= o->until && low < e->time)
			e->time = low;
	}
	sort_events(o->events, o->n, o->scratch);
}

/* Notes which ends that have no exact time are of addresses that several threads use. */
static void note_shared(struct order *o)
{
	for (size_t i = 0; o->earliest.n && i < o->n; i++) {
		const struct pending *e = &o->events[i];
		uint64_t addr = record(e->rec)->addr_hook & MPR_ADDR_MASK;
		struct undated_end *end;

		if (!bitmap_has(o->undated_bits, hash(addr) & o->ended_mask))
			continue;
		end = undated_at(o, addr);
		if (end && end->addr)
			end->shared |= end->slot != e->slot;
	}
}

static void move_rest(struct order_rest *to, struct order_rest *from)
{
	order_rest_free(to);
	*to = *from;
	*from = (struct order_rest){0};
}

/* Return: the index of the first event later than o->until. */
static size_t find_rest(const struct order *o)
{
	size_t i = o->n;

	while (i && o->events[i - 1].time > o->until)
		i--;
	return i;
}

/* Return: the number of segments whose rest was discarded. */
static uint64_t sort(struct order *o, const struct batch *b, uint64_t now, size_t *ends)
{
	const uint8_t *p = b->data;
	size_t n = 0, end = 0;
	uint64_t given_up = 0;
	struct lane *lanes;

	if (!ends || forget_ends(o, b->bytes / sizeof(struct mpr_free) + o->before.n) ||
	    forget_undated(o, b->ends.n + o->before.n + b->nsegments))
		return b->nsegments;
	given_up += add_kept(o);
	lanes = find_lanes(o, b, now);
	if (!lanes || settle_kept(o, lanes)) {
		free(lanes);
		o->n = 0;
		return b->nsegments;
	}
	date_kept(o, lanes);
	if (o->n)
		ends[n++] = o->n;
	for (uint32_t k = 0; k < b->nsegments; k++) {
		const struct segment *s = &b->segment[k];
		size_t first = o->n;

		given_up += add_segment(o, b, s, p, end, lanes[s->slot].latest, now);
		p += s->bytes;
		end += s->nends;
		if (o->n > first) {
			sort_events(o->events + first, o->n - first, o->scratch);
			ends[n++] = o->n;
		}
	}
	sort_merge_runs(&o->events, &o->scratch, ends, n);
	note_shared(o);
	free(lanes);
	return given_up;
}

uint64_t order_take(struct order *o, struct order_rest *rest, const struct batch *b, uint64_t now)
{
	size_t *ends = calloc(b->nsegments + 2, sizeof(*ends));
	uint64_t given_up;

	move_rest(&o->before, rest);
	o->n = o->earliest.n = 0;
	o->until = b->until;
	given_up = sort(o, b, now, ends);
	o->complete = find_rest(o);
	o->looks = LOOKS * (o->n + 1);
	free(ends);
	return given_up;
}

bool order_rest_taken(const struct order *o)
{
	for (size_t i = o->complete; i < o->n; i++) {
		if (o->events[i].slot == ORDER_TAKEN)
			return true;
	}
	return false;
}

void order_rest(const struct order *o, struct order_rest *rest)
{
	size_t bytes = 0, most = o->n - o->complete;

	order_rest_free(rest);
	rest->until = o->until;
	rest->any_taken = order_rest_taken(o);
	for (size_t i = o->complete; i < o->n; i++)
		bytes += record(o->events[i].rec)->h.size;
	if (!bytes)
		return;
	rest->data = malloc(bytes);
	rest->kept = malloc(most * sizeof(*rest->kept));
	bytes = 0;
	for (size_t i = o->complete; rest->data && rest->kept && i < o->n; i++) {
		const struct pending *e = &o->events[i];
		uint16_t size = record(e->rec)->h.size;

		if (e->slot == ORDER_TAKEN)
			continue;
		memcpy(rest->data + bytes, e->rec, size);
		bytes += size;
		rest->kept[rest->n++] = (struct kept){
		    e->time, order_is_end(e) ? order_earliest(o, e) : 0, e->slot, e->what};
	}
}

void order_rest_free(struct order_rest *rest)
{
	free(rest->data);
	free(rest->kept);
	*rest = (struct order_rest){0};
}

void order_free(struct order *o)
{
	free(o->events);
	free(o->scratch);
	order_rest_free(&o->before);
	vec_free(&o->earliest);
	free(o->undated);
	free(o->ended);
}
