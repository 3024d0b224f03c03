/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Corrects the order of records whose times are wrong by a moment.  A processor can read its
 * counter before earlier instructions are finished, and the counters of two processors differ
 * slightly.  So an allocation can have an earlier time than the free that made room for it, and a
 * free an earlier time than the allocation of its block by another thread.  The state of the
 * address shows this: if a record does not fit the state, the aggregator searches the next few
 * microseconds for the record that does and processes it first.
 */
#include "record/internal.h"

/* For an allocation of a live address: the only other cause is a lost free */
#define OVERTAKEN_US 10u
/* For a free of an unknown block.  Shorter, because it can be an older block that is soon allocated
 * again by another thread; within this time that is unlikely. */
#define UNKNOWN_US  1u
#define LOOK_MAX    256u /* events to search at most, since the target can write any times */
#define WAITING_MAX 16u

static const struct mpr_free *record(const struct pending *e)
{
	return (const void *)e->rec;
}

static uint64_t address(uint64_t addr_hook)
{
	return addr_hook & MPR_ADDR_MASK;
}

/* Return: the address of the block that the record creates, 0 if none. */
static uint64_t given(const struct pending *e)
{
	const struct mpr_realloc *end = (const void *)e->rec;

	switch (record(e)->h.type) {
	case MPR_ALLOC:
	case MPR_ALLOC_BIG:
		return address(record(e)->addr_hook);
	case MPR_REALLOC_END:
		if (!address(end->addr_hook) && !end->freed)
			return end->old_addr; /* it failed */
		return address(end->addr_hook);
	}
	return 0;
}

/* Return: the address of the block that the record ends, 0 if none. */
static uint64_t ended(const struct pending *e)
{
	switch (record(e)->h.type) {
	case MPR_FREE:
	case MPR_FREE_STACK:
	case MPR_REALLOC_BEGIN:
		return address(record(e)->addr_hook);
	}
	return 0;
}

/* Processes the pending records, up to and including @last, of the ring that contains @last.
 * Records of one ring are always in the right order. */
static void take_up(struct recorder *r, size_t last)
{
	uint32_t slot = r->order.events[last].slot, at_slot = r->at_slot;
	bool replaced = r->replaced;

	r->waiting++;
	for (size_t i = r->at + 1; i <= last; i++) {
		struct pending e = r->order.events[i];

		if (e.slot != slot)
			continue;
		r->order.events[i].slot = ORDER_TAKEN;
		r->process(r, &e, r->last_ns);
	}
	r->waiting--;
	r->at_slot = at_slot;
	r->replaced = replaced;
}

static bool look_ahead(struct recorder *r, uint64_t addr, uint64_t us,
		       uint64_t (*what)(const struct pending *))
{
	const struct pending *e = r->order.events;
	uint64_t until = e[r->at].time + us * r->tick_rate;
	size_t end = r->at + LOOK_MAX < r->order.n ? r->at + LOOK_MAX : r->order.n;

	if (r->waiting == WAITING_MAX)
		return false;
	for (size_t i = r->at + 1; i < end && e[i].time <= until; i++) {
		if (e[i].slot != ORDER_TAKEN && e[i].slot != r->at_slot && what(&e[i]) == addr) {
			take_up(r, i);
			return true;
		}
	}
	return false;
}

void overtaken_free(struct recorder *r, uint64_t addr)
{
	struct live_block b;

	if (live_find(r->live, addr, &b))
		look_ahead(r, addr, OVERTAKEN_US, ended);
}

bool overtaken_alloc(struct recorder *r, uint64_t addr)
{
	return look_ahead(r, addr, UNKNOWN_US, given);
}

bool overtaken_by_alloc(const struct recorder *r, uint64_t addr)
{
	const struct pending *e = r->order.events;
	uint64_t time = e[r->at].time, since = r->tick_rate * UNKNOWN_US;
	size_t begin = r->at > LOOK_MAX ? r->at - LOOK_MAX : 0;

	for (size_t i = r->at; i-- > begin && time - e[i].time <= since;) {
		if (e[i].slot != r->at_slot && given(&e[i]) == addr)
			return true;
	}
	return false;
}
