/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/order/overtaken.h"

#include "record/aggregator.h"

/* For an allocation of a live address, or an allocator's own free of a block that is that young: the
 * only other cause is a lost free */
#define OVERTAKEN_US 10u
/* For a free of an unknown block.  Shorter, because it can be an older block that is soon allocated
 * again by another thread; within this time that is unlikely. */
#define UNKNOWN_US  1u
#define LOOK_MAX    256u /* events to search at most, since the target can write any times */
#define WAITING_MAX 16u

/* Processes the pending records, up to and including @last, of the ring that contains @last.
 * Records of one ring are always in the right order. */
static void take_up(struct aggregator *a, size_t last)
{
	uint32_t slot = a->order->events[last].slot, at_slot = a->at_slot;

	a->waiting++;
	for (size_t i = a->at + 1; i <= last; i++) {
		struct pending e = a->order->events[i];

		if (e.slot != slot)
			continue;
		a->order->events[i].slot = ORDER_TAKEN;
		a->process(a, &e, a->last_ns);
	}
	a->waiting--;
	a->at_slot = at_slot;
}

/* Processes one event, whose records of the same ring before it need not be processed. */
static void take_end(struct aggregator *a, size_t i)
{
	struct pending e = a->order->events[i];
	uint32_t at_slot = a->at_slot;

	a->order->events[i].slot = ORDER_TAKEN;
	a->waiting++;
	a->process(a, &e, a->last_ns);
	a->waiting--;
	a->at_slot = at_slot;
}

static bool look_ahead(struct aggregator *a, uint64_t addr, uint64_t us,
		       uint64_t (*what)(const struct pending *))
{
	const struct pending *e = a->order->events;
	uint64_t until = e[a->at].time + us * a->tick_rate;
	size_t end = a->at + LOOK_MAX < a->order->n ? a->at + LOOK_MAX : a->order->n;

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
	size_t i;

	if (!live_find(a->live, addr, &b))
		return;
	/* First, because a free that has a later time is more often that of the new block. */
	i = a->waiting < WAITING_MAX ? order_waiting_end(a->order, a->at, addr) : a->order->n;
	if (i < a->order->n)
		take_end(a, i);
	else
		look_ahead(a, addr, OVERTAKEN_US, order_ended);
}

bool overtaken_alloc(struct aggregator *a, uint64_t addr)
{
	return look_ahead(a, addr, UNKNOWN_US, order_begun);
}

bool overtaken_by_alloc(const struct aggregator *a, uint64_t addr)
{
	const struct pending *e = a->order->events;
	uint64_t time = e[a->at].time, since = a->tick_rate * OVERTAKEN_US;
	size_t begin = a->at > LOOK_MAX ? a->at - LOOK_MAX : 0;

	for (size_t i = a->at; i-- > begin && time - e[i].time <= since;) {
		if (e[i].slot != a->at_slot && order_begun(&e[i]) == addr)
			return true;
	}
	return false;
}
