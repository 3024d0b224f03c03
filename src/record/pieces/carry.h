/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * State that a recorder carries over from the previous recorder of the same session: the live
 * heap, and the ledger that shows whether records were lost in between.  Every record that the
 * agent wrote has been seen by a recorder, was dropped by its queue, is still in a ring, or is
 * lost.
 */
#ifndef RECORD_PIECES_CARRY_H
#define RECORD_PIECES_CARRY_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/mem.h"
#include "formats/file.h"
#include "formats/session.h"
#include "lib/vec.h"

#define CARRY_BUDGET	 (4ull << 20)  /* bytes of stacks, default */
#define CARRY_MAX_BUDGET (20ull << 20) /* ceiling */
#define CARRY_CLEARED	 "[live-alloc cleared]"
/* The address that represents it in stacks.  No code can be there. */
#define CARRY_CLEARED_PC (1 | SS_PC_EXACT)

struct carried_stack {
	uint64_t first; /* index in carry.pc */
	uint32_t n, flags;
	uint64_t bytes, blocks; /* live */
	bool cleared;		/* over the budget: counted under CARRY_CLEARED */
};

struct carried_block {
	uint64_t addr, size, usable;
	uint32_t stack; /* index in carry.stacks; 0: no stack */
	uint32_t tid;
	uint16_t hook;
	uint8_t flags, weight;
	bool in_realloc; /* thread @realloc_tid had begun to realloc it and had not finished */
	uint32_t realloc_tid;
};

struct carry {
	VEC(struct carried_block) blocks;
	VEC(struct carried_stack) stacks;
	VEC(uint64_t) pc;
	VEC(struct mp_module) modules;	/* the paths are owned by struct carry */
	VEC(uint32_t) foreign_reallocs; /* threads inside a realloc of an unknown block */
	struct mp_losses losses;	/* the last counters of the previous recorder */
	uint64_t bytes;			/* live */
	uint64_t cleared_stacks, cleared_bytes;
};

/* Frees the members of @c. */
void carry_free(struct carry *c);

/* Return: the bytes that a stack of @n frames uses of the budget. */
uint64_t carry_stack_cost(uint32_t n);

/**
 * carry_fit() - fold the stacks with the fewest live bytes until the rest costs at most @budget
 * bytes
 * The sums do not change: the blocks of a folded stack are counted under CARRY_CLEARED.
 * Return: 0 or -ENOMEM.
 */
int carry_fit(struct carry *c, uint64_t budget);

struct ledger {
	uint64_t written[MPR_LOST_KINDS]; /* by the agent since the session began */
	uint64_t waiting[MPR_LOST_KINDS]; /* of these, still in the rings */
	bool exact;			  /* false: a ring was written while it was read */
};

/* Reads the agent's counters and rings into @l.  @layout: trusted copy of the block's layout
 * (@block itself is not trusted); @accounts: address of the threads' accounts in the target, which
 * are read through @mem.  Return: 0 or -ENOMEM. */
int ledger_take(const struct ss_control *block, const struct ss_control *layout,
		const struct mem *mem, uint64_t accounts, struct ledger *l);

/* Counts the missing records in @losses as lost by the restart.  Return: their number. */
uint64_t ledger_settle(const struct ledger *l, struct mp_losses *losses);

#endif
