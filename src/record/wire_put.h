/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The producer side of a thread slot, for the observer: writes wire records (formats/record.h)
 * into the slot's ring.  Waits for the reader if the ring is full. */
#ifndef RECORD_WIRE_PUT_H
#define RECORD_WIRE_PUT_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/session.h"

struct perf_event_mmap_page;

struct wire {
	struct ss_thread *slot;
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t size;
};

struct wire_range {
	uint64_t length, old_addr;
	uint32_t prot, flags, stack;
	int32_t fd;
};

/* Claims slot @index. */
struct wire wire_open(struct ss_control *block, const struct ss_control *layout, uint32_t index);
/* The functions below write one record each.  @time: ticks; @addr_hook: address and hook in one
 * word (formats/record.h); @stack: id in the session's arena. */
void wire_thread(struct wire *w, uint64_t time, uint32_t tid);
void wire_alloc(struct wire *w, uint64_t time, uint64_t addr_hook, uint64_t size, uint32_t stack);
/* @type: MPR_FREE or MPR_REALLOC_BEGIN; @misc: MPR_F_OWN_FREE or 0. */
void wire_free(struct wire *w, uint32_t type, uint16_t misc, uint64_t time, uint64_t addr_hook);
void wire_realloc_end(struct wire *w, uint64_t time, uint64_t old_addr, uint64_t addr_hook,
		      uint64_t size, uint32_t stack, bool freed);
void wire_map(struct wire *w, uint32_t type, uint64_t time, uint64_t addr_hook,
	      const struct wire_range *r);
void wire_mallopt(struct wire *w, uint64_t time, int32_t param, int32_t value, int32_t result,
		  uint32_t stack);
/* @misc: MPR_F_MAJOR, MPR_F_NO_SIZE; @page: page size in bytes. */
void wire_fault(struct wire *w, uint16_t misc, uint64_t time, uint64_t addr, uint32_t page,
		uint32_t stack);
void wire_lost(struct wire *w, enum mpr_lost kind, uint64_t n);

#endif
