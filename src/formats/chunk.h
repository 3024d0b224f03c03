/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Framing of the recording file (formats/FORMAT.md), used by its writer and readers. */
#ifndef FORMATS_CHUNK_H
#define FORMATS_CHUNK_H

#include <stdint.h>
#include <string.h>
#include "formats/file.h"

#define CHUNK_FILE_MAGIC   "memprof\n"
#define CHUNK_FILE_VERSION 2u
#define CHUNK_FILE_OLDEST  1u	       /* its chunks are those of version 2 but CHUNK_EVENTS */
#define CHUNK_MAGIC	   0x4b43504du /* "MPCK" */
/* Magic, type, raw bytes, stored bytes, crcs of payload and header */
#define CHUNK_HEADER 24u
#define CHUNK_MAX    (16u << 20)
#define CHUNK_TARGET (256u << 10) /* raw bytes at which a chunk is written */

enum chunk_type {
	CHUNK_INFO = 1,
	CHUNK_ITEMS = 2,
	CHUNK_END = 3,
	CHUNK_INDEX = 4,
	CHUNK_BINARY = 5,
	CHUNK_EVENTS = 6,
};

/* First byte of an item: event kind in the low four bits and ITEM_* flags above, or 0 and an item
 * kind above.  If that is 0, too, the item kind is in the next byte. */
#define ITEM_TID    0x10 /* thread follows: it differs from the last event's */
#define ITEM_HOOK   0x20 /* hook follows: it differs from the last one of this event kind */
#define ITEM_FLAGS  0x40 /* enum ev_flags follow */
#define ITEM_USABLE 0x80 /* usable - size follows */

enum item {
	ITEM_OF_HOOK = 1,
	ITEM_OF_MODULE,
	ITEM_OF_THREAD,
	ITEM_OF_STACK,
	ITEM_OF_SAMPLE,
	ITEM_OF_LOSSES,
	ITEM_OF_SYMBOLS,
	ITEM_OF_FINISH,
	ITEM_OF_BYTES_CULLED, /* earlier versions; no longer read */
	ITEM_OF_MARK,
	ITEM_OF_MAP_USAGE,
	ITEM_OF_TOTALS,
	ITEM_OF_LIVE,
	ITEM_OF_PROCESS,
	ITEM_OF_MEMORY,
	/* in a second byte */
	ITEM_OF_CULLED,
	ITEM_OF_SECTION,
	ITEM_OF_STACK_PEAK,
	ITEM_OF_ACTIVITY,
	ITEM_OF_THREAD_ACTIVITY,
};
#define ITEM_KINDS_IN_TAG 16

#define EVENT_KINDS 16

/* Event kinds of allocations with a weight; the weight follows the stack. */
#define CHUNK_WEIGHTED_ALLOC   12
#define CHUNK_WEIGHTED_REALLOC 13
#define CHUNK_WEIGHT_MAX       24

/* Base values of the differences; zero at the start of every chunk. */
struct chunk_state {
	uint64_t time, addr, symbol_pc, module;
	uint32_t tid, stack_id;
	uint16_t hook[EVENT_KINDS];
	uint64_t pc[1024]; /* of the last stack, innermost first */
	uint32_t npc;
	struct mp_culled culled;   /* the last one */
	struct mp_section section; /* the last one */
};

static inline uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Return: the address after it. */
static inline uint8_t *varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
