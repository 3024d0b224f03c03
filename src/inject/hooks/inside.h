/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Determines which threads are inside the agent: those about to execute its code, or that will
 * return to it.
 *
 * The agent keeps an account of this for each thread (struct ss_account).  So it does not matter if
 * a stack cannot be unwound (JIT code, musl, Go), nor which words earlier calls have left on it.
 * Once the text is restored no thread enters the agent any more: a thread that was found outside
 * stays outside.
 */
#ifndef INJECT_HOOKS_INSIDE_H
#define INJECT_HOOKS_INSIDE_H

#include <stdbool.h>
#include "attach/target.h"
#include "inject/block/lookup.h"
#include "inject/session.h"
#include "lib/check.h"

struct inside {
	struct session *s;
	spans_t own; /* the agent's text and the islands */
	struct ss_account *accounts;
	uint32_t n;	  /* number of accounts, a power of two or 0 */
	bool present;	  /* the accounts are mapped */
	bool unaccounted; /* threads without an account can be inside too */
	bool child;	  /* forked child: only the thread that forked can be inside */
	/* Threads that can still be inside, once inside_note() was called: all others have been
	 * seen outside, or were created after the text had been restored. */
	VEC(pid_t) suspects;
	bool noted;
};

/* Return: 0 or -ENOMEM.  Release with inside_free(), also after -ENOMEM. */
__must_check int inside_open(struct inside *in, struct session *s, bool child);
/* Reads the current accounts. */
void inside_read(struct inside *in);
void inside_free(struct inside *in);

/* Is the stopped thread inside?  Conservative: true if that is possible.  @maps: current mappings.
 * A thread in vfork() has no registers, and its child can be inside, unless the thread was seen
 * outside before: then its child was created outside too. */
bool inside_thread(const struct inside *in, struct thread *th, const struct maps *maps);

/* Notes that of all threads only those that are marked (keep) can still be inside.  The text must be
 * restored.  Without memory all stay suspects. */
void inside_note(struct inside *in);

/* Does the thread's account show that it is in a hook?  Reads the account anew; the thread can be
 * running.  @inside: a struct inside, for target_run_kept() */
bool inside_hook(const void *inside, const struct thread *th);

/* Can a thread or a coroutine return to the code or the descriptor in @slot of an island?  All
 * threads must be stopped.  Conservative: words that earlier calls have left on a stack count. */
bool inside_slot(const struct inside *in, const struct span *slot, const struct maps *maps);

/**
 * inside_coroutine() - is there a frame of the agent on a stack that no thread uses now?
 * A coroutine has such a stack if it was switched away inside an allocator.  All threads must be
 * stopped, and none of them be inside.
 */
bool inside_coroutine(const struct inside *in, const struct maps *maps);

#endif
