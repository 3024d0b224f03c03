/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A batch of hooks that session_install() installs at once: plan.c plans it, slots.c finds and fills
 * its slots, patch.c installs it.
 */
#ifndef INJECT_HOOKS_BATCH_H
#define INJECT_HOOKS_BATCH_H

#include "inject/family.h"
#include "inject/internal.h"

/* A hook that is being installed. */
struct work {
	struct ss_journal_hook hook; /* its future journal entry ... */
	uint32_t index;		     /* ... and the number of that entry */
	struct arch_patch patch;
	uint8_t slot[SLOT_BYTES];
	bool own_text; /* if refused: the text that was read is that of the file */
};

struct hook_batch {
	struct session *s;
	uint32_t first, n; /* plan.hooks[first .. first+n) are to be installed */
	struct work *work;
	uint32_t planned;	 /* of work[], so far */
	uint32_t put;		 /* of work[], entered in the journal */
	uint32_t nislands;	 /* those of the journal, followed by planned ones */
	uint32_t nnames;	 /* the same for names */
	bool busy[SS_MAX_HOOKS]; /* entries that cannot be reused now */
	struct family_watch family;
};

/* Plans the batch: plan.hooks[first ..] of the session; drops those that need no hook or cannot have
 * one, and lists the latter in plan.refused.  Return: 0, or a negative errno with @err (can be NULL)
 * if a hook without which the numbers would be wrong cannot be installed. */
int batch_plan(struct hook_batch *b, const struct maps *maps, struct mp_err *err);

/* Finds an entry of the journal for the next hook.  Return: SS_MAX_HOOKS if there is none. */
uint32_t batch_find_entry(const struct hook_batch *b);
/* Is this journal entry reused by a hook of this batch? */
bool batch_reuses_entry(const struct hook_batch *b, uint32_t index);
/* Does the batch reuse any? */
bool batch_reuses(const struct hook_batch *b);
/* Fills @err: the journal has no entry left.  Return: -E2BIG. */
int batch_no_entry(struct mp_err *err);

/* Finds a slot within reach of a short jump from @addr, else of a long one; plans a new island if
 * needed.  Return: its address, 0 if there is none. */
uint64_t batch_find_slot(struct hook_batch *b, const struct maps *maps, uint64_t addr);
/* Fills w->slot for a hook whose patch is planned. */
void batch_build_slot(const struct hook_batch *b, const struct planned_hook *h, struct work *w);

/* With all threads stopped: maps the planned islands; publishes rows for the relocated prologues, so
 * that a stack can be unwound if a signal interrupts them; writes the slots and turns the gate on.
 * Return: 0 or a negative errno, with @err. */
int batch_map_islands(struct hook_batch *b, struct mp_err *err);
int batch_publish_islands(const struct hook_batch *b);
int batch_write_slots(struct hook_batch *b, struct mp_err *err);

#endif
