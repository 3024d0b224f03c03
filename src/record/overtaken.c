/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/overtaken.h"

#include "record/aggregator.h"

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
static void take_up(struct aggregator *a, size_t last)
{
	uint32_t slot = a->order.events[last].slot, at_slot = a->at_slot;
	bool replaced = a->replaced;

	a->waiting++;
	for (size_t i = a->at + 1; i <= last; i++) {
		struct pending e = a->order.events[i];

		if (e.slot != slot)
			continue;
		a->order.events[i].slot = ORDER_TAKEN;
		a->process(a, &e, a->last_ns);
	}
	a->waiting--;
	a->at_slot = at_slot;
	a->replaced = replaced;
}

static bool look_ahead(struct aggregator *a, uint64_t addr, uint64_t us,
		       uint64_t (*what)(const struct pending *))
{
	const struct pending *e = a->order.events;
	uint64_t until = e[a->at].time + us * a->tick_rate;
	size_t end = a->at + LOOK_MAX < a->order.n ? a->at + LOOK_MAX : a->order.n;

	if (a->waiting == WAITING_MAX)
		return false;
	for (size_t i = a->at + 1; i < end && e[i].time <= until; i++) {
		if (e[i].slot != ORDER_TAKEN && e[i].slot != a->at_slot && what(&e[i]) == addr) {
			take_up(a, i);
			return true;
		}
	}
	return false;
}

void overtaken_free(struct aggregator *a, uint64_t addr)
{
	struct live_block b;

	if (live_find(a->live, addr, &b))
		look_ahead(a, addr, OVERTAKEN_US, ended);
}

bool overtaken_alloc(struct aggregator *a, uint64_t addr)
{
	return look_ahead(a, addr, UNKNOWN_US, given);
}

bool overtaken_by_alloc(const struct aggregator *a, uint64_t addr)
{
	const struct pending *e = a->order.events;
	uint64_t time = e[a->at].time, since = a->tick_rate * UNKNOWN_US;
	size_t begin = a->at > LOOK_MAX ? a->at - LOOK_MAX : 0;

	for (size_t i = a->at; i-- > begin && time - e[i].time <= since;) {
		if (e[i].slot != a->at_slot && given(&e[i]) == addr)
			return true;
	}
	return false;
}
