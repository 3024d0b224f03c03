/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Time says in which order threads did things, but for moments: a processor reads its counter
 * before earlier instructions are done, and the counters of two processors differ by what their
 * owners could not measure.  So an allocation can carry an earlier time than the free that made
 * room for it, and a free an earlier one than the allocation of its block by another thread.  What
 * an address went through before tells: whoever finds it in a state that cannot be looks a moment
 * ahead, and what it overtook is taken up first.
 */
#include "record/internal.h"

#define OVERTAKEN_US 10u /* an allocation of a live block: no other explanation but a loss */
/* A free of an unknown block: it may be older than the recording, and soon be given to another
 * thread.  Within this time hardly. */
#define UNKNOWN_US  1u
#define LOOK_MAX    256u /* events: their times are a target's claim */
#define WAITING_MAX 16u

static const struct mpr_free *record(const struct pending *e)
{
	return (const void *)e->rec;
}

static uint64_t address(uint64_t addr_hook)
{
	return addr_hook & MPR_ADDR_MASK;
}

/* The block that exists from the record on, 0 if none. */
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

/* The block that ends with the record, 0 if none. */
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

/* Takes up what the thread of the event at @last did until then and what is not taken up yet: in a
 * ring's own order nothing is ever wrong. */
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
		event_process(r, &e, r->last_ns);
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
