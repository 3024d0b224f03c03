/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A decoded event.  The aggregator produces it from wire records; the recording file and the
 * reports use it.  It is the only in-memory event type of the project.
 */
#ifndef FORMATS_EVENT_H
#define FORMATS_EVENT_H

#include <stdint.h>

enum ev_kind {
	EV_ALLOC = 1,	      /* addr, size, usable, stack, hook */
	EV_FREE = 2,	      /* addr, hook */
	EV_REALLOC_BEGIN = 3, /* addr leaves the live set; the calling thread still owns it */
	EV_REALLOC_END = 4, /* old_addr became addr (size, usable, stack); addr 0: see EV_F_FREED */
	EV_MAP = 5,	    /* addr, size (length), prot, mapflags, fd, stack, hook */
	EV_UNMAP = 6,	    /* addr, size */
	EV_UNMAP_FAILED = 7, /* the thread's last EV_UNMAP failed */
	EV_REMAP_BEGIN = 8,  /* addr, size: old range */
	EV_REMAP_END = 9,    /* old_addr, addr, size; addr 0: failed, the old range is live again */
	EV_MALLOPT = 10,     /* mallopt: size = param, usable = value, fd = result */
	EV_FAULT = 11,	     /* addr (accessed), size (of its page), stack; no hook */
};

enum ev_flags {
	EV_F_NON_MAIN = 1,  /* glibc: not the main arena */
	EV_F_MMAPPED = 2,   /* glibc: block is a mapping of its own */
	EV_F_INNER = 4,	    /* mapping made by the allocator for itself */
	EV_F_OWN_FREE = 16, /* EV_FREE: called by the allocator itself */
	EV_F_CARRIED = 64,  /* EV_ALLOC: live at the start of the file, carried over; not a call */
	/* The block that ends is not temporary (model/model.h): its thread made allocations that are
	 * not in the recording, which was culled or thinned */
	EV_F_NOT_TEMPORARY = 32,
	/* EV_FREE: the time is not exact.  The block ended after the event of its thread before and
	 * before the thread's next one. */
	EV_F_ABOUT = 1,
	EV_F_STACK = 128, /* EV_FREE: has the caller's stack */
	EV_F_FREED = 8,	  /* EV_REALLOC_END with addr 0: realloc(p, 0) released the block */
	EV_F_MAJOR = 1,	  /* EV_FAULT: had to wait for a file or for swap */
	/* EV_FAULT: the kernel did not report the page size; size is that of the smallest */
	EV_F_NO_SIZE = 2,
};

struct mp_event {
	uint64_t time_ns; /* since the start of the recording */
	uint64_t addr, old_addr;
	uint64_t size;	 /* requested bytes, or length of a range */
	uint64_t usable; /* bytes that the block really has; equals size if not known */
	uint32_t stack;	 /* recording's stack id; 0: none */
	uint32_t tid;
	int32_t fd;
	uint32_t prot, mapflags;
	uint8_t kind, flags;
	uint16_t hook;	/* index of struct mp_hook_info */
	uint8_t weight; /* EV_ALLOC, EV_REALLOC_END: the event represents 2^weight of its kind */
};

#endif
