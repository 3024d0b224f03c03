/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which blocks the events of a batch begin and end, and where ends can be whose time is not exact. */
#include <string.h>
#include "record/order/order.h"

static const struct mpr_free *record(const uint8_t *p)
{
	return (const void *)p; /* every record begins with the header and time of this one */
}

uint64_t order_begun(const struct pending *e)
{
	const struct mpr_realloc *end = (const void *)e->rec;

	if (e->what & ORDER_END)
		return 0;
	switch (mpr_type(&record(e->rec)->h)) {
	case MPR_ALLOC:
	case MPR_ALLOC_BIG:
		return record(e->rec)->addr_hook & MPR_ADDR_MASK;
	case MPR_REALLOC_END:
		if (!(end->addr_hook & MPR_ADDR_MASK) && !end->freed)
			return end->old_addr; /* it failed */
		return end->addr_hook & MPR_ADDR_MASK;
	}
	return 0;
}

uint64_t order_ended(const struct pending *e)
{
	switch (mpr_type(&record(e->rec)->h)) {
	case MPR_ALLOC:
		return e->what & ORDER_END ? record(e->rec)->addr_hook & MPR_ADDR_MASK : 0;
	case MPR_FREE:
	case MPR_FREE_STACK:
	case MPR_REALLOC_BEGIN:
		return record(e->rec)->addr_hook & MPR_ADDR_MASK;
	}
	return 0;
}

bool order_postpone(struct order *o, size_t i, bool is_live)
{
	struct pending end = o->events[i];
	uint64_t addr = order_ended(&end);
	size_t after = i;

	for (size_t j = i + 1; j < o->n && o->events[j].time <= o->until && o->looks; j++) {
		const struct pending *e = &o->events[j];

		o->looks--;
		if (e->slot == end.slot && !(e->what & ORDER_END))
			break; /* the end was before this event */
		if (e->slot == end.slot || e->slot == ORDER_TAKEN)
			continue;
		if (is_live && order_begun(e) == addr)
			break;
		if (order_begun(e) == addr) {
			is_live = true;
			after = j;
		} else if (order_ended(e) == addr) {
			is_live = false;
		}
	}
	if (after == i)
		return false;
	end.time = o->events[after].time;
	memmove(o->events + i, o->events + i + 1, (after - i) * sizeof(end));
	o->events[after] = end;
	return true;
}

size_t order_waiting_end(const struct order *o, size_t i, uint64_t addr)
{
	const struct pending *now = &o->events[i];
	size_t found = o->n;

	for (size_t k = o->n; k-- > 0 && o->events[k].time > o->until;) {
		const struct pending *e = &o->events[k];

		if (order_is_end(e) && e->slot != ORDER_TAKEN && e->slot != now->slot &&
		    order_ended(e) == addr && order_earliest(o, e) <= now->time)
			found = k;
	}
	return found;
}
