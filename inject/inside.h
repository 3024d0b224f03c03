/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which threads are inside the agent: are about to run its code, or will return to it.
 *
 * The agent keeps an account of it for each thread (struct ss_account), so that a stack which
 * cannot be unwound (JIT code, musl, Go) does not matter, nor what earlier calls have left on it.
 * Once the text is restored no thread enters the agent any more: a thread that was found outside
 * stays outside.
 */
#ifndef INJECT_INSIDE_H
#define INJECT_INSIDE_H

#include <stdbool.h>
#include "attach/target.h"
#include "inject/lookup.h"
#include "inject/session.h"
#include "lib/check.h"

struct inside {
	struct session *s;
	spans_t own; /* the agent's text and the islands */
	struct ss_account *accounts;
	uint32_t n;	  /* of accounts, a power of two or 0 */
	bool present;	  /* they are mapped */
	bool unaccounted; /* threads without an account may be inside too */
	bool child;	  /* of a fork: only the thread that forked can be inside */
};

/* Return: 0 or -ENOMEM.  To be released by inside_free(). */
__must_check int inside_open(struct inside *in, struct session *s, bool child);
/* Reads the accounts as they are now. */
void inside_read(struct inside *in);
void inside_free(struct inside *in);

/* Is the stopped thread inside?  Conservative: one that may be counts.  @maps: recent ones. */
bool inside_thread(const struct inside *in, struct thread *th, const struct maps *maps);

/* Does the thread's account say that it is in a hook?  Reads it anew; the thread may run.
 * @inside: a struct inside, for target_run_kept() */
bool inside_hook(const void *inside, const struct thread *th);

/* May a thread, or a coroutine, come back to the code or the descriptor in @slot of an island?  All
 * threads are stopped.  Conservative: words that earlier calls have left on a stack count. */
bool inside_slot(const struct inside *in, const struct span *slot, const struct maps *maps);

/**
 * inside_coroutine() - is there a frame of the agent on a stack that no thread uses now?
 * Such are the stacks of coroutines that were switched away inside an allocator.  All threads are
 * stopped, and none of them is inside.
 */
bool inside_coroutine(const struct inside *in, const struct maps *maps);

#endif
