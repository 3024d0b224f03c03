/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The live heap that one recorder takes over from another one of the same session, and the ledger
 * that tells whether anything was lost in between: every record that the agent wrote was seen by
 * a recorder, was dropped by its queue, still waits in a ring, or is lost.
 */
#ifndef RECORD_CARRY_H
#define RECORD_CARRY_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/mem.h"
#include "formats/file.h"
#include "formats/session.h"
#include "lib/vec.h"

#define CARRY_BUDGET	 (4ull << 20)  /* bytes of stacks, default */
#define CARRY_MAX_BUDGET (20ull << 20) /* ceiling */
#define CARRY_CLEARED	 "[live-alloc cleared]"
/* Its address in stacks: no code is there. */
#define CARRY_CLEARED_PC (1 | SS_PC_EXACT)

struct carried_stack {
	uint64_t first; /* index in carry.pc */
	uint32_t n, flags;
	uint64_t bytes, blocks; /* live */
	bool cleared;		/* over the budget: its blocks go to CARRY_CLEARED */
};

struct carried_block {
	uint64_t addr, size, usable;
	uint32_t stack; /* index in carry.stacks; 0: no stack */
	uint32_t tid;
	uint16_t hook;
	uint8_t flags;
	bool in_realloc; /* of thread @realloc_tid: it had begun, its end is to come */
	uint32_t realloc_tid;
};

struct carry {
	VEC(struct carried_block) blocks;
	VEC(struct carried_stack) stacks;
	VEC(uint64_t) pc;
	VEC(struct mp_module) modules;	/* paths owned here */
	VEC(uint32_t) foreign_reallocs; /* threads in a realloc of a block that is not known */
	struct mp_losses losses;	/* the last of the recorder before */
	uint64_t bytes;			/* live */
	uint64_t cleared_stacks, cleared_bytes;
};

void carry_free(struct carry *c);

/* What a stack of @n frames costs of the budget, in bytes. */
uint64_t carry_stack_cost(uint32_t n);

/**
 * carry_fit() - fold the stacks that hold least until the rest costs at most @budget bytes
 * Sums stay the same to the byte: the blocks of a folded stack are those of CARRY_CLEARED.
 * Return: 0 or -ENOMEM.
 */
int carry_fit(struct carry *c, uint64_t budget);

struct ledger {
	uint64_t written[MPR_LOST_KINDS]; /* by the agent since the session began */
	uint64_t waiting[MPR_LOST_KINDS]; /* of them in the rings */
	bool exact; /* false: a thread kept writing while its ring was looked at */
};

/* Takes the agent's side.  @layout: believed, unlike @block; @accounts: address of the slots'
 * accounts in the target, whose memory is @mem.  Return: 0 or -ENOMEM. */
int ledger_take(const struct ss_control *block, const struct ss_control *layout,
		const struct mem *mem, uint64_t accounts, struct ledger *l);

/* Enters what is missing as lost by the restart.  Return: how many records. */
uint64_t ledger_settle(const struct ledger *l, struct mp_losses *losses);

#endif
