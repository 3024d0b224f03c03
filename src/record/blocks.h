/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maintains the live table and the sums of live memory. */
#ifndef RECORD_BLOCKS_H
#define RECORD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "formats/record.h"
#include "lib/estimate.h"
#include "lib/live.h"
#include "record/culling/cull.h"
#include "record/origins.h"

struct aggregator;
struct slot_state;
enum block_change { BLOCK_BEGINS, BLOCK_ENDS, BLOCK_IS_CARRIED /* it was live before */ };
/* Return: what @b represents; @b->stack: an id. */
struct estimate block_estimate(const struct aggregator *a, const struct live_block *b);
/* Changes the sums of live memory by a block. */
void block_account(struct aggregator *a, const struct live_block *b, enum block_change change);
/* Subtracts a block from the sums, and counts its end. */
void block_ended(struct aggregator *a, const struct live_block *b);
/* Adds a block to the live table; @old: as in live_put().  Return: 0 or -ENOMEM. */
int block_put(struct aggregator *a, const struct live_block *b, const struct origin *origin,
	      struct live_block *old);
/* A block that was removed from the live table. */
struct known_block {
	struct live_block of;
	struct origin origin; /* only if the recording is rotated or @held is a number */
	uint32_t held;	      /* its number in culling; or CULL_NONE */
};
/* Removes a block from the live table.  Return: false if the block is not known. */
bool block_take(struct aggregator *a, uint64_t addr, struct known_block *b);
/* block_take() for a free or realloc by the program: an unknown block's allocation is searched for
 * among slightly later records (overtaken.c). */
bool block_end(struct aggregator *a, uint64_t addr, struct known_block *b);
/* Adds the block of an allocation event to the live table; with culling, also adds the event.
 * @resized: the beginning of the realloc that the event ends; NULL: it is not of a realloc. */
void block_born(struct aggregator *a, const struct mp_event *ev,
		const struct cull_realloc *resized);
/* For struct cull_config; @aggregator: struct aggregator. */
void block_let_go(void *aggregator, const struct mp_event *ev);
void block_ahead(void *aggregator, uint64_t addr);
/* Prefetches what the end of the block at @addr needs; its bucket of the live table is prefetched. */
void block_prefetch(const struct aggregator *a, uint64_t addr);
/* Adds a block that ends in the same batch, and is not put into the live table: nothing else in the
 * batch ends a block at its address.  @number: ORDER_NUMBER.  Return: false if it must be added by
 * block_born(). */
bool block_born_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		      const struct mp_event *ev);
/* Accounts for a block, of @ev, that begins and ends before anything else happens; as for
 * block_born_short(). */
bool block_pair(struct aggregator *a, const struct slot_state *st, const struct mp_event *ev);
/* Ends such a block; @r: the record of its allocation; @stack: set to its stack.  Return: false if
 * there is none with this number. */
bool block_end_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		     const struct mpr_alloc *r, uint32_t *stack);
/* Accounts for a block whose address was allocated again: its free was lost. */
void block_replaced(struct aggregator *a, const struct live_block *old);
/* Processes the free of a block: removes it from the live table, or counts the free by why the
 * block is not known.  Return: whether it was known. */
bool block_gone(struct aggregator *a, uint64_t addr, bool own_free, struct known_block *b);
/* Ends the thread's open realloc and removes its old block from the sums: the realloc finished, or
 * its end will never be seen (lost, or the thread was killed inside). */
void drop_realloc(struct aggregator *a, struct slot_state *st);

#endif
