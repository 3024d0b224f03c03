/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maintains the live table and the sums of live memory. */
#ifndef RECORD_BLOCKS_H
#define RECORD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "formats/file.h"
#include "formats/record.h"
#include "lib/live.h"
#include "record/origins.h"

struct aggregator;
struct slot_state;
/* Adds (@sign 1) or subtracts (-1) a block from the sums of live memory. */
void block_account(struct aggregator *a, const struct live_block *b, int sign);
/* Subtracts a block from the sums, and counts its end. */
void block_ended(struct aggregator *a, const struct live_block *b);
/* Adds a block to the live table; @old: as in live_put().  Return: 0 or -ENOMEM. */
int block_put(struct aggregator *a, const struct live_block *b, const struct origin *origin,
	      struct live_block *old);
/* Removes a block from the live table.  @origin can be NULL; it is filled only if the recording is
 * rotated.  Return: false if the block is not known. */
bool block_take(struct aggregator *a, uint64_t addr, struct live_block *b, struct origin *origin);
/* block_take() for a free or realloc by the program: an unknown block's allocation is searched for
 * among slightly later records (overtaken.c). */
bool block_end(struct aggregator *a, uint64_t addr, struct live_block *b, struct origin *origin);
/* Adds the block of an allocation event to the live table. */
void block_born(struct aggregator *a, const struct mp_event *ev);
/* Adds a block that ends in the same batch, and is not put into the live table: nothing else in the
 * batch ends a block at its address.  @number: ORDER_NUMBER.  Return: false if it must be added by
 * block_born(). */
bool block_born_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		      const struct mp_event *ev);
/* Ends such a block; @r: the record of its allocation.  Return: false if there is none with this
 * number. */
bool block_end_short(struct aggregator *a, struct slot_state *st, uint32_t number,
		     const struct mpr_alloc *r);
/* Accounts for a block whose address was allocated again: its free was lost. */
void block_replaced(struct aggregator *a, const struct live_block *old);
/* Processes the free of a block: removes it from the live table, or counts the free by why the
 * block is not known.  Return: whether it was known. */
bool block_gone(struct aggregator *a, uint64_t addr, bool own_free, struct live_block *b);
/* Ends the thread's open realloc and removes its old block from the sums: the realloc finished, or
 * its end will never be seen (lost, or the thread was killed inside). */
void drop_realloc(struct aggregator *a, struct slot_state *st);

#endif
