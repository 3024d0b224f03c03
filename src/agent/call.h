/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the hook bodies: begin and end of a hooked call, and the records of the heap. */
#ifndef AGENT_CALL_H
#define AGENT_CALL_H

#include "agent/ring.h"
#include "agent/stack.h"
#include "agent/thin.h"

#define barrier() __asm__ volatile("" ::: "memory")

typedef ag_word_t ag_original_fn(ag_word_t, ag_word_t, ag_word_t, ag_word_t, ag_word_t);

/* The body of a hook, entered from agent-entry.S with the hooked function's arguments (as many as
 * it has; the other registers are undefined) and the state that the entry code saved.  It returns
 * the hooked function's result. */
#define AG_HOOK(name)                                                                              \
	ag_word_t name(ag_word_t a0, ag_word_t a1, ag_word_t a2, ag_word_t a3, ag_word_t a4,       \
		       const struct ag_frame *f);                                                  \
	ag_word_t name(ag_word_t a0, ag_word_t a1, ag_word_t a2, ag_word_t a3, ag_word_t a4,       \
		       const struct ag_frame *f)

#define AG_ORIGINAL(f) ((ag_original_fn *)(uintptr_t)(f)->desc->original_addr)
#define AG_SIBLING(f)  ((ag_original_fn *)(uintptr_t)(f)->desc->sibling_addr)

static inline uint64_t ag_requested(const struct ss_desc *d, uint64_t a0, uint64_t a1, uint64_t a2)
{
	if (likely(d->size_kind == SS_SIZE_ARG0))
		return a0;
	switch (d->size_kind) {
	case SS_SIZE_ARG1:
		return a1;
	case SS_SIZE_ARG2:
		return a2;
	case SS_SIZE_ARG0_X_ARG1:
		return a0 * a1;
	}
	return a1 * a2;
}

/* call.c: ag_begin() of a call that arrives while the thread is in a hook. */
bool ag_begin_nested(struct ag_call *call, bool inner_too);

/* call.c: writes the call's registers and stack for the recorder to unwind.  Return: the record's
 * stack id, or MPR_STACK_NONE. */
uint32_t ag_put_raw_stack(const struct ag_call *call, uint64_t now);

/*
 * Begins the handling of a call.  Return: false if there is nothing to record (no thread slot, or
 * an inner call and @inner_too is not set).
 */
static inline bool ag_begin(struct ag_call *call, const struct ag_frame *f, bool inner_too)
{
	struct ag_thread *t;

	call->c = ag_control();
	call->f = f;
	call->inner = false;
	call->t = t = ag_thread_slot(call->c);
	if (unlikely(!t))
		return false;
	call->account = ag_account_of(t);
	call->level = call->account->depth;
	if (unlikely(call->level) && !ag_begin_nested(call, inner_too))
		return false;
	if (!call->level)
		call->account->outer_sp = ag_frame_sp(f);
	call->account->depth = call->level + 1;
	barrier();
	return true;
}

static inline void ag_end(const struct ag_call *call)
{
	barrier();
	if (unlikely(call->account->nleft))
		ag_stack_frame_returned(call);
	call->account->depth = call->level;
}

/* Is the recorder alive?  If its deadline has passed the call is only counted as stale. */
static inline bool ag_recorder_alive(const struct ag_call *call, uint64_t now, enum mpr_lost kind)
{
	if (likely(now <= call->c->deadline))
		return true;
	call->t->s.stale[kind]++;
	return false;
}

/* Counts a call that ends a block, in a thread that has no slot. */
static inline void ag_count_no_slot_free(struct ss_control *c)
{
	__atomic_fetch_add(&c->lost_no_slot_free, 1, __ATOMIC_RELAXED);
}

static inline void ag_lost(const struct ag_call *call, enum mpr_lost kind, uint64_t bytes)
{
	call->t->s.lost[kind]++;
	call->t->s.lost_bytes += bytes;
}

/* @k: as from ag_thin(). */
static inline void ag_lost_alloc(const struct ag_call *call, uint32_t k, uint64_t size)
{
	call->t->s.lost[MPR_LOST_ALLOC] += 1ull << k;
	call->t->s.lost_bytes += size << k;
}

/* call.c: ag_put_alloc() for sizes of 4 GiB and more. */
bool ag_put_alloc_big(const struct ag_call *call, uint64_t now, uint64_t block, uint64_t size,
		      uint32_t stack, uint16_t misc);

static inline __attribute__((always_inline)) uint32_t ag_take_stack(const struct ag_call *call,
								    uint64_t now)
{
	uint32_t id = ag_stack_take(call);

	return likely(id != AG_STACK_RAW_WANTED) ? id : ag_put_raw_stack(call, now);
}

/* Usable size and arena of a block that was just returned, from glibc's chunk header. */
static inline uint16_t ag_block_misc(const struct ss_desc *d, uint64_t block, uint64_t size)
{
	const uint64_t word = sizeof(ag_word_t);
	uint64_t head, slack;
	uint16_t misc = 0;

	if (!d->glibc_chunks)
		return MPR_SLACK_UNKNOWN << MPR_SLACK_SHIFT;
	head = *(const ag_word_t *)(uintptr_t)(block - word);
	if (unlikely(head & 2))
		misc = MPR_F_MMAPPED;
	else if (head & 4)
		misc = MPR_F_NON_MAIN;
	slack = (head & ~7ull) - (head & 2 ? 2 * word : word) - size;
	if (unlikely(slack >= MPR_SLACK_UNKNOWN))
		slack = MPR_SLACK_UNKNOWN;
	return (uint16_t)(misc | slack << MPR_SLACK_SHIFT);
}

static inline uint64_t ag_addr_hook(const struct ss_desc *d, uint64_t addr)
{
	return (addr & MPR_ADDR_MASK) | (uint64_t)d->hook << MPR_ADDR_BITS;
}

static inline uint64_t ag_weight(uint32_t k)
{
	return (uint64_t)k << MPR_WEIGHT_SHIFT;
}

/* Records an allocation that represents 2^@k.  Return: whether it was recorded.  A loss is counted. */
static inline __attribute__((always_inline)) bool ag_put_weighted_alloc(const struct ag_call *call,
									uint64_t now,
									uint64_t block,
									uint64_t size, uint32_t k)
{
	const struct ss_desc *d = call->f->desc;
	struct ss_control *c = call->c;
	uint32_t stack = ag_take_stack(call, now);
	uint16_t misc = ag_block_misc(d, block, size);

	if (unlikely(size >> 32))
		return ag_put_alloc_big(call, now, block, size, stack, misc);
	if (likely(ag_ring_put_words(c, call->t, ag_ring_limit(c, false), block,
				     mpr_head(MPR_ALLOC, misc, sizeof(struct mpr_alloc)), now,
				     ag_addr_hook(d, block) | ag_weight(k),
				     pair_word((uint32_t)size, stack))))
		return true;
	ag_lost_alloc(call, k, size);
	return false;
}

/* Return: whether the event was recorded.  A loss is counted; a block that is thinned out is in
 * the set. */
static inline __attribute__((always_inline)) bool ag_put_alloc(const struct ag_call *call,
							       uint64_t block, uint64_t size)
{
	uint64_t now = ag_ticks();
	uint32_t k;

	if (unlikely(now > call->c->deadline)) {
		call->t->s.stale[MPR_LOST_ALLOC]++;
		return false;
	}
	k = ag_thin(call, now, block, size);
	if (unlikely(k == AG_THINNED_OUT))
		return false;
	return ag_put_weighted_alloc(call, now, block, size, k);
}

/* Return: the flag of a record that ends a block, if the thread's allocations since its latest record
 * of one were thinned out. */
static inline uint16_t ag_skipped(const struct ag_thread *t)
{
	return unlikely(t->thinning.skipped) ? MPR_F_SKIPPED : 0;
}

static inline __attribute__((always_inline)) bool
ag_put_free(struct ss_control *c, struct ag_thread *t, enum mpr_type type, uint64_t now,
	    const struct ss_desc *d, uint64_t block, uint16_t misc)
{
	return ag_ring_put_words(c, t, ag_ring_limit(c, true), 0,
				 mpr_head(type, misc | ag_skipped(t), sizeof(struct mpr_free)), now,
				 ag_addr_hook(d, block), 0);
}

/* When a thread ends, glibc frees the blocks in the thread's cache a second time; recognized by the
 * caller. */
static inline uint16_t ag_free_misc(const struct ss_desc *d, uint64_t return_address)
{
	return return_address - d->own_code < d->own_code_length ? MPR_F_OWN_FREE : 0;
}

/* call.c: records that the old block is no longer live.  Return: false if that is not recorded:
 * lost (counted) or stale. */
bool ag_put_realloc_begin(const struct ag_call *call, uint64_t old);

/* call.c: records the new block.  @block 0: the old one was freed (@released) or is live again.
 * Must follow every recorded REALLOC_BEGIN. */
void ag_put_realloc_end(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			bool released);
/* call.c: the same if the new block is recorded and represents 2^@k. */
void ag_put_weighted_realloc_end(const struct ag_call *call, uint64_t old, uint64_t block,
				 uint64_t size, bool released, uint32_t k);

/* call.c: the same for an old block that thinning had thinned out: the new one is an allocation. */
void ag_realloc_thinned(const struct ag_call *call, uint64_t old, uint64_t block, uint64_t size,
			bool released);

#endif
