/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Wire records, which the agent writes into its rings and the recorder reads.  The framing is the
 * kernel's (struct perf_event_header: u32 type, u16 misc, u16 size, linux/perf_event.h).  The types
 * of memprof start far above the kernel's so that one reader can handle both.  Sizes are multiples
 * of 8.  Freestanding: included by agent/.
 *
 * The producer is the target, which is not trusted: a reader checks every size and index.
 */
#ifndef FORMATS_RECORD_H
#define FORMATS_RECORD_H

#include <stdint.h>
#include "formats/column.h"
#include "formats/pair.h"

enum mpr_type {
	MPR_ALLOC = 0x4d01, /* struct mpr_alloc */
	/* struct mpr_alloc_big: size >= 4 GiB, or from the observer */
	MPR_ALLOC_BIG = 0x4d02,
	MPR_FREE = 0x4d03,	    /* struct mpr_free, written before the block is freed */
	MPR_REALLOC_BEGIN = 0x4d04, /* struct mpr_free: the old block leaves the live set */
	MPR_REALLOC_END = 0x4d05,   /* struct mpr_realloc: new block, or 0: failed or freed */
	MPR_MAP = 0x4d06,	    /* struct mpr_map: mmap, shmat */
	MPR_UNMAP = 0x4d07,	    /* struct mpr_map: munmap, shmdt, written before the call */
	MPR_UNMAP_FAILED = 0x4d08,  /* struct mpr_map: the unmap just recorded failed */
	MPR_REMAP_BEGIN = 0x4d09,   /* struct mpr_map: mremap's old range leaves the live set */
	MPR_REMAP_END = 0x4d0a,	    /* struct mpr_map: mremap's result; addr 0: it failed */
	MPR_MALLOPT = 0x4d0b,	    /* struct mpr_mallopt */
	/* struct mpr_raw_stack: for the event that refers to its sequence number */
	MPR_RAW_STACK = 0x4d0c,
	MPR_THREAD = 0x4d0d, /* struct mpr_thread: the ring belongs to this thread from now on */
	MPR_FREE_STACK = 0x4d0e, /* struct mpr_free_stack: MPR_FREE with the caller's stack */
	MPR_FAULT = 0x4d0f,	 /* struct mpr_fault: from the kernel, never from the agent */
};

struct mpr_header {    /* layout of struct perf_event_header */
	uint32_t type; /* enum mpr_type; MPR_ALLOC: with the end of the block, see mpr_ended() */
	uint16_t misc;
	uint16_t size; /* bytes of the whole record, multiple of 8 */
};

/* Convert between the header and the 64-bit word that it is in memory. */
static inline uint64_t mpr_head(uint32_t type, uint16_t misc, uint16_t size)
{
	return pair_word(type,
			 PAIR_LITTLE ? misc | (uint32_t)size << 16 : (uint32_t)misc << 16 | size);
}

static inline uint16_t mpr_head_size(uint64_t head)
{
	return (uint16_t)(PAIR_LITTLE ? pair_second(head) >> 16 : pair_second(head));
}

static inline uint32_t mpr_head_type(uint64_t head)
{
	return pair_first(head);
}

/*
 * The end of a block that was freed soon, by the thread that allocated it: the agent does not write
 * an MPR_FREE, but sets the upper half of the type in the block's MPR_ALLOC record, as long as that
 * record is among the last MPR_RECENT bytes before the ring's head.  The lower 10 bits of that half
 * are the distance from the record to the head at that time, in units of 8 bytes; the upper 6 bits
 * are the index of the free function's name in the journal.  So the block ended after the thread
 * had written all records before that position, and before it wrote the next one.
 */
#define MPR_RECENT	    4096u
#define MPR_ENDED_SHIFT	    16
#define MPR_ENDED_BITS	    10
#define MPR_ENDED_MAX_HOOK  63u
#define MPR_ENDED_HOOKSHIFT (MPR_ENDED_SHIFT + MPR_ENDED_BITS)

/* Return: enum mpr_type. */
static inline uint32_t mpr_type(const struct mpr_header *h)
{
	return h->type & ((1u << MPR_ENDED_SHIFT) - 1);
}

/* Return: bytes from the record to the position at which its block ended; 0: not ended. */
static inline uint32_t mpr_ended(const struct mpr_header *h)
{
	return (h->type >> MPR_ENDED_SHIFT & ((1u << MPR_ENDED_BITS) - 1)) << 3;
}

/* Return: index of the function that ended the block. */
static inline uint16_t mpr_ended_hook(const struct mpr_header *h)
{
	return (uint16_t)(h->type >> MPR_ENDED_HOOKSHIFT);
}

/* Return: the header word @head of an MPR_ALLOC record, which has no end yet, with the end of the
 * block, @distance bytes after it, a multiple of 8, by function @hook. */
static inline uint64_t mpr_head_ended(uint64_t head, uint32_t distance, uint32_t hook)
{
	return head | pair_word(distance << (MPR_ENDED_SHIFT - 3) | hook << MPR_ENDED_HOOKSHIFT, 0);
}

/* The reverse of mpr_head_ended(). */
static inline uint64_t mpr_head_open(uint64_t head)
{
	return pair_word(pair_first(head) & ((1u << MPR_ENDED_SHIFT) - 1), pair_second(head));
}

/*
 * An address, its hook and its weight in one word: user addresses fit in the lower 48 bits, the next
 * 10 bits are the index of the hook's name in the journal.  The upper 6 bits of an allocation are k
 * if it represents 2^k allocations (agent/thin.h, agent/sample.h), which only those of less than
 * MPR_WEIGHT_MAX_SIZE bytes do.
 */
#define MPR_ADDR_BITS	    48
#define MPR_ADDR_MASK	    ((1ull << MPR_ADDR_BITS) - 1)
#define MPR_WEIGHT_SHIFT    58
#define MPR_WEIGHT_MAX	    24u
#define MPR_WEIGHT_MAX_SIZE (1u << 20)

static inline uint16_t mpr_hook(uint64_t addr_hook)
{
	return (uint16_t)(addr_hook >> MPR_ADDR_BITS &
			  ((1u << (MPR_WEIGHT_SHIFT - MPR_ADDR_BITS)) - 1));
}

/* Return: k of an allocation of @size bytes.  A target's false record has none. */
static inline uint8_t mpr_weight(uint64_t addr_hook, uint64_t size)
{
	uint8_t k = (uint8_t)(addr_hook >> MPR_WEIGHT_SHIFT);

	return size < MPR_WEIGHT_MAX_SIZE && k <= MPR_WEIGHT_MAX ? k : 0;
}

/* mpr_header.misc of allocation records: usable size minus requested size, and flags. */
#define MPR_SLACK_SHIFT	  4
#define MPR_SLACK_UNKNOWN 0xfffu
#define MPR_F_NON_MAIN	  1u /* glibc: the chunk is not in the main arena */
#define MPR_F_MMAPPED	  2u /* glibc: the chunk is a mapping of its own */
#define MPR_F_OWN_FREE	  8u /* frees: called by the allocator itself */
#define MPR_F_INNER	  4u /* maps: made by the allocator while it served a hooked call */
/* Frees and reallocs: the thread made allocations that were thinned out since its last record of an
 * allocation */
#define MPR_F_SKIPPED 4u
#define MPR_F_MAJOR   1u /* faults: it had to wait for a file or for swap */
#define MPR_F_NO_SIZE 2u /* faults: the kernel did not report the page size */

/*
 * Stack ids. 0: no stack.  Below MPR_STACK_RAW: index of 8-byte words in the session's stack arena
 * (struct ss_stack).  With MPR_STACK_RAW: sequence number of an mpr_raw_stack that precedes the
 * event in the same ring.
 */
#define MPR_STACK_NONE 0u
#define MPR_STACK_RAW  0x80000000u

struct mpr_alloc { /* 32 bytes */
	struct mpr_header h;
	uint64_t time; /* target clock ticks (TSC on x86-64) */
	uint64_t addr_hook;
	uint32_t size; /* requested, bytes */
	uint32_t stack;
};

struct mpr_alloc_big {
	struct mpr_header h;
	uint64_t time;
	uint64_t addr_hook;
	uint64_t size;
	uint32_t stack;
	uint32_t reserved;
};

struct mpr_free { /* 24 bytes */
	struct mpr_header h;
	uint64_t time;
	uint64_t addr_hook;
};

struct mpr_free_stack { /* 32 bytes */
	struct mpr_header h;
	uint64_t time;
	uint64_t addr_hook;
	uint32_t stack;
	uint32_t reserved;
};

struct mpr_realloc {	     /* 48 bytes */
	struct mpr_header h; /* misc as in mpr_alloc, of the new block */
	uint64_t time;
	uint64_t old_addr;
	uint64_t addr_hook; /* new address; 0 address: failed, or freed when size is 0 */
	uint64_t size;
	uint32_t stack;
	uint32_t freed; /* 1: realloc(p, 0) released the block */
};

struct mpr_map { /* 56 bytes */
	struct mpr_header h;
	uint64_t time;
	uint64_t addr_hook; /* the address (result), or old range for UNMAP and REMAP_BEGIN */
	uint64_t length;
	uint64_t old_addr; /* REMAP_END: the old range's start; MAP: the hint */
	uint32_t prot, flags;
	int32_t fd; /* mmap's fd, shmat's id */
	uint32_t stack;
};

struct mpr_mallopt {
	struct mpr_header h;
	uint64_t time;
	int32_t param, value;
	int32_t result;
	uint32_t stack;
};

struct mpr_fault { /* 32 bytes */
	struct mpr_header h;
	uint64_t time;
	uint64_t addr; /* accessed address */
	uint32_t page; /* bytes */
	uint32_t stack;
};

struct mpr_thread {
	struct mpr_header h;
	uint64_t time;
	uint32_t tid;
	uint32_t reserved;
};

struct mpr_raw_stack {
	struct mpr_header h;
	uint64_t time;
	uint32_t sequence;  /* unique in the ring; events refer to it as MPR_STACK_RAW | sequence */
	uint32_t bytes;	    /* bytes of stack after the registers, from the sp up */
	uint64_t reg_valid; /* bit i: regs[i] is valid */
	/* Indexed by column; unsigned char stack[bytes] follows, padded to a multiple of 8. */
	uint64_t regs[UW_MAX_REGS];
};

/* Kinds of records for counting; indices of ss_thread.written[], lost[] and stale[]. */
enum mpr_lost {
	MPR_LOST_ALLOC,
	MPR_LOST_FREE,
	MPR_LOST_REALLOC,
	MPR_LOST_MAP,
	MPR_LOST_OTHER,
	MPR_LOST_KINDS
};

static inline enum mpr_lost mpr_kind(uint32_t type)
{
	if (type == MPR_ALLOC || type == MPR_ALLOC_BIG)
		return MPR_LOST_ALLOC;
	if (type == MPR_FREE || type == MPR_FREE_STACK)
		return MPR_LOST_FREE;
	if (type == MPR_REALLOC_BEGIN || type == MPR_REALLOC_END)
		return MPR_LOST_REALLOC;
	if (type >= MPR_MAP && type <= MPR_REMAP_END)
		return MPR_LOST_MAP;
	return MPR_LOST_OTHER;
}

#endif
