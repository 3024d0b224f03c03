/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What writer and reader of a chunk of events (formats/FORMAT.md, "Events") have in common: the
 * columns, the tags, and the values that both predict from the events before.
 */
#ifndef FORMATS_EVENT_CODE_H
#define FORMATS_EVENT_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "formats/chunk.h"
#include "formats/event.h"

/* Columns of several bytes are as many columns, of which the first has the lowest byte. */
enum column {
	COL_TAG,
	COL_ALLOC_TIME, /* 2 */
	COL_FREE_TIME = COL_ALLOC_TIME + 2,
	COL_FLAGS = COL_FREE_TIME + 2,
	COL_CHANGES,
	COL_SIZE,		  /* 2 */
	COL_STACK = COL_SIZE + 2, /* 2 */
	COL_USABLE = COL_STACK + 2,
	COL_ALLOC_NEAR,
	COL_ALLOC_WHERE,
	COL_ALLOC_BLOCK,		      /* 3 */
	COL_ALLOC_ADDR = COL_ALLOC_BLOCK + 3, /* 4 */
	COL_FREE_BLOCK = COL_ALLOC_ADDR + 4,  /* 3 */
	COL_FREE_WHERE = COL_FREE_BLOCK + 3,
	COL_FREE_ADDR, /* 4 */
	COL_REST = COL_FREE_ADDR + 4,
	COL_ITEMS,
	COLUMNS,
};

_Static_assert(COLUMNS == 31, "formats/FORMAT.md lists the columns");

/* Tags.  0: the next entry of COL_ITEMS. */
#define TAG_ALLOC   0x80
#define TAG_FREE    0x40
#define TAG_FLAGS   0x01
#define TAG_CHANGES 0x02
/* With TAG_ALLOC: not as predicted */
#define TAG_STACK  0x04
#define TAG_SIZE   0x08
#define TAG_USABLE 0x10
/* With TAG_ALLOC: the address */
#define TAG_AT	     0x60
#define TAG_AT_FREED 0x00
#define TAG_AT_NEXT  0x20
#define TAG_AT_OTHER 0x40
#define TAG_AT_NEAR  0x60
/* With TAG_FREE */
#define TAG_TIME	  0x04
#define TAG_BLOCK	  0x18
#define TAG_BLOCK_AFTER	  0x00
#define TAG_BLOCK_BEFORE  0x08
#define TAG_BLOCK_NUMBER  0x10
#define TAG_BLOCK_ADDRESS 0x18
#define TAG_FREE_USED	  (TAG_FREE | TAG_FLAGS | TAG_CHANGES | TAG_TIME | TAG_BLOCK)

/* Bits in COL_CHANGES */
#define CHANGE_TID     0x01
#define CHANGE_HOOK    0x02
#define CHANGE_REALLOC 0x04 /* the event is the begin or the end of a realloc */
#define CHANGE_WEIGHT  0x08 /* only with TAG_ALLOC */

/* Times from SHORT_TIME on have a second byte.  LONG: the value, or its highest part, is in
 * COL_REST. */
#define SHORT_TIME 224u
#define LONG	   255u

#define KNOWN_BLOCKS   (1u << 16)
#define KNOWN_STACKS   4096u
#define KNOWN_SIZES    4096u
#define BLOCK_CLASSES  1024u
#define BASES	       8u
#define WHERE_ABSOLUTE (4 * BASES)	    /* in COL_*_WHERE: no base */
#define WHERE_BLOCK    (WHERE_ABSOLUTE + 1) /* in COL_ALLOC_WHERE */

/* A block as it was allocated or freed in the chunk. */
struct known_block {
	uint64_t addr;
	uint32_t below; /* freed: the block of its class that was freed before it */
	uint16_t class; /* 0 if it is not known */
};

/* Addresses that were last used, each in another part of the address space. */
struct bases {
	uint64_t at[BASES];
	uint32_t replaced;
};

/* All 0 at the start of every chunk, except for the blocks.  Each allocation and each free takes the
 * next number, from 1; only the last KNOWN_BLOCKS are known.  The tables of stacks and sizes are shared by
 * those that are equal modulo the table's length. */
struct event_state {
	struct known_block *block; /* KNOWN_BLOCKS, indexed by number modulo KNOWN_BLOCKS */
	uint32_t last;		   /* the last number */
	uint32_t ended;		   /* the number by which the last block ended that was known */
	uint32_t reallocated; /* number of the block that the last realloc took; 0: not known */
	uint32_t last_stack;
	uint64_t realloc_addr; /* of the block that the last realloc took */
	uint64_t ended_addr;   /* of the block that ended last */
	uint64_t next_addr;    /* of the next allocation if it follows the last one in memory */
	struct bases allocs, frees;
	uint32_t top[BLOCK_CLASSES]; /* the block that was freed last; 0: none */
	uint32_t stack_after[KNOWN_STACKS];
	uint32_t size_of[KNOWN_STACKS];
	uint8_t slack_of[KNOWN_SIZES]; /* usable - size */
};

static inline void events_restart(struct event_state *es)
{
	struct known_block *block = es->block;

	memset(es, 0, sizeof(*es));
	es->block = block;
}

static inline struct known_block *block_at(const struct event_state *es, uint32_t number)
{
	return &es->block[number % KNOWN_BLOCKS];
}

static inline bool block_known(const struct event_state *es, uint32_t number)
{
	return number && es->last - number < KNOWN_BLOCKS;
}

static inline uint32_t *stack_after(struct event_state *es)
{
	return &es->stack_after[es->last_stack % KNOWN_STACKS];
}

static inline uint32_t *size_of(struct event_state *es, uint32_t stack)
{
	return &es->size_of[stack % KNOWN_STACKS];
}

static inline uint8_t *slack_of(struct event_state *es, uint64_t size)
{
	return &es->slack_of[size % KNOWN_SIZES];
}

/* Allocators take blocks of the same usable size from the same list of free ones. */
static inline uint16_t class_of(uint64_t usable)
{
	return usable / 16 % BLOCK_CLASSES;
}

/* Return: the block of @class that was freed last; 0: not known. */
static inline uint32_t block_freed(const struct event_state *es, uint16_t class)
{
	return block_known(es, es->top[class]) ? es->top[class] : 0;
}

/* The block that block_freed() returned is used again. */
static inline void block_take(struct event_state *es, uint16_t class)
{
	es->top[class] = block_at(es, es->top[class])->below;
}

/* A block at @addr is free.  @number: as it was allocated; its class is known if that is. */
static inline void block_release(struct event_state *es, uint64_t addr, uint32_t number)
{
	struct known_block b = {.addr = addr};
	bool known = block_known(es, number);

	if (known) {
		b.class = block_at(es, number)->class;
		b.below = es->top[b.class];
	}
	*block_at(es, ++es->last) = b;
	if (known)
		es->top[b.class] = es->last;
}

/* Notes an allocation, to which the last number belongs.  @found: it is where block_freed()
 * predicted it.  Return: true if a realloc freed the old block, to which the last number belongs. */
static inline bool block_put(struct event_state *es, const struct mp_event *ev, uint16_t class,
			     bool found)
{
	*block_at(es, es->last) = (struct known_block){.addr = ev->addr, .class = class};
	/* glibc has 8 bytes before each block, which begin at a multiple of 16. */
	if (!found)
		es->next_addr = ev->addr + ((ev->usable + 23) & ~(uint64_t)15);
	if (ev->kind != EV_REALLOC_END || ev->addr == es->realloc_addr)
		return false;
	block_release(es, es->realloc_addr, es->reallocated);
	return true;
}

/* A block ended.  @number: as it was allocated; 0 if that is not known. */
static inline void block_ended(struct event_state *es, const struct mp_event *ev, uint32_t number)
{
	es->ended_addr = ev->addr;
	if (number)
		es->ended = number;
	if (ev->kind == EV_FREE) {
		block_release(es, ev->addr, number);
		return;
	}
	/* A realloc often leaves the block where it is. */
	es->reallocated = number;
	es->realloc_addr = ev->addr;
}

/* @addr is far from all bases: replaces them in turn. */
static inline void base_replace(struct bases *b, uint64_t addr)
{
	b->at[b->replaced++ % BASES] = addr;
}

#endif
