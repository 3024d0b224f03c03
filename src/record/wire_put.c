/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record/wire_put.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#define WAIT_US 200

struct wire wire_open(struct ss_control *block, const struct ss_control *layout, uint32_t index)
{
	char *slot = (char *)block + layout->slots + index * layout->slot_stride;
	struct wire w = {.slot = (void *)slot,
			 .page = (void *)(slot + layout->slot_ring),
			 .data = (uint8_t *)slot + layout->slot_ring + 4096,
			 .size = layout->ring_size};

	__atomic_store_n(&w.slot->tp, index + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&block->slots_claimed, 1, __ATOMIC_RELEASE);
	return w;
}

static void put_record(struct wire *w, enum mpr_lost kind, void *record, uint32_t type,
		       uint16_t misc, uint16_t size)
{
	struct mpr_header h = {type, misc, size};
	uint64_t head = w->page->data_head, at = head & (w->size - 1), first = w->size - at;

	memcpy(record, &h, sizeof(h));
	while (w->size - (head - __atomic_load_n(&w->page->data_tail, __ATOMIC_ACQUIRE)) < size)
		usleep(WAIT_US);
	if (first > size)
		first = size;
	memcpy(w->data + at, record, first);
	memcpy(w->data, (uint8_t *)record + first, size - first);
	__atomic_store_n(&w->page->data_head, head + size, __ATOMIC_RELEASE);
	__atomic_store_n(&w->slot->written[kind], w->slot->written[kind] + 1, __ATOMIC_RELEASE);
}

void wire_thread(struct wire *w, uint64_t time, uint32_t tid)
{
	struct mpr_thread r = {.time = time, .tid = tid};

	__atomic_store_n(&w->slot->tid, tid, __ATOMIC_RELEASE);
	put_record(w, MPR_LOST_OTHER, &r, MPR_THREAD, 0, sizeof(r));
}

void wire_alloc(struct wire *w, uint64_t time, uint64_t addr_hook, uint64_t size, uint32_t stack)
{
	struct mpr_alloc_big r = {
	    .time = time, .addr_hook = addr_hook, .size = size, .stack = stack};

	put_record(w, MPR_LOST_ALLOC, &r, MPR_ALLOC_BIG, MPR_SLACK_UNKNOWN << MPR_SLACK_SHIFT,
		   sizeof(r));
}

void wire_free(struct wire *w, uint32_t type, uint16_t misc, uint64_t time, uint64_t addr_hook)
{
	struct mpr_free r = {.time = time, .addr_hook = addr_hook};

	put_record(w, type == MPR_FREE ? MPR_LOST_FREE : MPR_LOST_REALLOC, &r, type, misc,
		   sizeof(r));
}

void wire_realloc_end(struct wire *w, uint64_t time, uint64_t old_addr, uint64_t addr_hook,
		      uint64_t size, uint32_t stack, bool freed)
{
	struct mpr_realloc r = {.time = time,
				.old_addr = old_addr,
				.addr_hook = addr_hook,
				.size = size,
				.stack = stack,
				.freed = freed};

	put_record(w, MPR_LOST_REALLOC, &r, MPR_REALLOC_END,
		   (uint16_t)(MPR_SLACK_UNKNOWN << MPR_SLACK_SHIFT), sizeof(r));
}

void wire_map(struct wire *w, uint32_t type, uint64_t time, uint64_t addr_hook,
	      const struct wire_range *range)
{
	struct mpr_map r = {.time = time,
			    .addr_hook = addr_hook,
			    .length = range->length,
			    .old_addr = range->old_addr,
			    .prot = range->prot,
			    .flags = range->flags,
			    .fd = range->fd,
			    .stack = range->stack};

	put_record(w, MPR_LOST_MAP, &r, type, 0, sizeof(r));
}

void wire_mallopt(struct wire *w, uint64_t time, int32_t param, int32_t value, int32_t result,
		  uint32_t stack)
{
	struct mpr_mallopt r = {
	    .time = time, .param = param, .value = value, .result = result, .stack = stack};

	put_record(w, MPR_LOST_OTHER, &r, MPR_MALLOPT, 0, sizeof(r));
}

void wire_fault(struct wire *w, uint16_t misc, uint64_t time, uint64_t addr, uint32_t page,
		uint32_t stack)
{
	struct mpr_fault r = {.time = time, .addr = addr, .page = page, .stack = stack};

	put_record(w, MPR_LOST_OTHER, &r, MPR_FAULT, misc, sizeof(r));
}

void wire_lost(struct wire *w, enum mpr_lost kind, uint64_t n)
{
	w->slot->lost[kind] += n;
}
